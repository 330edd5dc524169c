"""What a command line starts: a script, a Python module, more shell text, or nothing that matters here."""

import posixpath
import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

PYTHON = re.compile(r"(?:python|pypy|ipython)[\d.]*[a-z]?|\{sys\.executable\}|\$\{?PYTHON\}?")
_ASSIGNMENT = re.compile(r"[A-Za-z_]\w*\+?=.*", re.DOTALL)
SHELLS = frozenset({"bash", "sh", "zsh", "dash", "ksh", "source", "."})
JUPYTER = frozenset({"jupyter", "jupyter-nbconvert", "jupyter-execute", "papermill"})
# The programs that run files with these suffixes, without the version in their names.
INTERPRETERS = {
    ".R": {"R", "Rscript"}, ".r": {"R", "Rscript"}, ".jl": {"julia"}, ".pl": {"perl"}, ".rb": {"ruby"},
    ".lua": {"lua", "luajit"}, ".php": {"php"}, ".m": {"octave", "octave-cli"}, ".go": {"go"},
    ".java": {"java"}, ".jar": {"java"}, ".js": {"node", "nodejs", "bun", "deno"}, ".mjs": {"node", "nodejs"},
    ".cjs": {"node", "nodejs"}, ".ts": {"node", "nodejs", "bun", "deno"},
}  # fmt: skip
SCRIPTS = (".py", ".sh", ".bash", ".ipynb", *INTERPRETERS)
_VERSION = re.compile(r"[-\d.]+\Z")
# They run the code of the next argument.
_CODE = re.compile(r"-[a-z0-9]*[eE].*|--?(?:eval|print|exec)\b.*|-p", re.DOTALL)
_KEYWORDS = frozenset({"if", "then", "elif", "else", "while", "until", "do", "!", "{"})
_SCRIPT_SUFFIXES = (".py", ".sh", ".bash", ".ipynb")
_HELP = frozenset({"-h", "--help"})

# Commands that start the command in their arguments. Their own options are skipped.
_WRAPPERS = frozenset({
    "nohup", "time", "timeout", "nice", "ionice", "sudo", "env", "exec", "command", "stdbuf", "setsid",
    "unbuffer", "xvfb-run", "taskset", "chrt", "srun", "mpirun", "mpiexec", "horovodrun", "torchrun",
    "accelerate", "deepspeed", "coverage", "kernprof", "conda", "mamba", "micromamba", "poetry", "uv",
    "pipenv", "pdm", "hatch", "rye",
})  # fmt: skip
_WRAPPER_MODULES = frozenset({
    "torch.distributed.launch", "torch.distributed.run", "accelerate.commands.launch", "cProfile", "profile",
    "pdb", "trace", "coverage", "memory_profiler", "kernprof", "debugpy", "scalene", "viztracer",
})  # fmt: skip


@dataclass(frozen=True, slots=True)
class Launch:
    kind: Literal["script", "module", "shell"]
    text: str
    """The script's path, the module's name, or the shell text."""


def without_prefix(words: Sequence[str]) -> Sequence[str]:
    """The words after leading shell keywords and `NAME=value` assignments."""
    start = 0
    while start < len(words) and (words[start] in _KEYWORDS or _ASSIGNMENT.fullmatch(words[start])):
        start += 1
    return words[start:]


def launched(words: Sequence[str]) -> Launch | None:
    """What a simple command starts. `words` has no prefix and is not empty. `--help` starts nothing."""
    program, arguments = posixpath.basename(words[0]), words[1:]
    if PYTHON.fullmatch(program):
        return by_python(arguments)
    if program in SHELLS:
        return by_shell(arguments)
    if is_other_interpreter(program):
        return by_other(program, arguments)
    if program == "eval":
        return Launch("shell", " ".join(arguments))
    if program in JUPYTER:
        return by_jupyter(program, arguments)
    if program in _WRAPPERS:
        return _wrapped(arguments)
    # The shell looks for a name without a slash in PATH only.
    return _script(words[0], arguments) if "/" in words[0] else None


def _script(path: str, arguments: Sequence[str]) -> Launch | None:
    return None if _HELP.intersection(arguments) else Launch("script", path)


def by_python(arguments: Sequence[str]) -> Launch | None:
    """What a Python with these arguments starts."""
    skip = False
    for index, word in enumerate(arguments):
        if skip or word.startswith("--"):
            skip = False
        elif not word.startswith("-"):
            return _script(word, arguments)
        # Short options can be joined, up to the first one that takes a value: `-uW ignore`, `-mtrain`.
        elif stop := re.match(r"-[A-VY-Zabd-ln-z\d]*([cmWX])(.*)", word, re.DOTALL):
            if stop[1] == "m":
                return _module([*([stop[2]] if stop[2] else []), *arguments[index + 1 :]])
            if stop[1] == "c":
                return None
            skip = not stop[2]
        elif word == "-":
            return None
    return None


def _module(words: Sequence[str]) -> Launch | None:
    if not words or _HELP.intersection(words):
        return None
    if words[0] in _WRAPPER_MODULES:
        return _wrapped(words[1:])
    if words[0] in ("jupyter", "nbconvert", "papermill"):
        return by_jupyter(words[0], words)
    return Launch("module", words[0])


def by_shell(arguments: Sequence[str]) -> Launch | None:
    """What a shell with these arguments starts."""
    skip = is_text = False
    for word in arguments:
        if skip or word.startswith("--"):
            skip = False
        elif word.startswith(("-", "+")):
            is_text = is_text or "c" in word
            # These take a value: `bash -o pipefail run.sh`.
            skip = word[-1] in "oO"
        elif is_text:
            return Launch("shell", word)
        else:
            return _script(word, arguments)
    return None


def is_other_interpreter(program: str) -> bool:
    """Whether it is the program of a language besides Python and shells."""
    return any(_VERSION.sub("", program) in names for names in INTERPRETERS.values())


def by_other(program: str, arguments: Sequence[str]) -> Launch | None:
    """The first argument with a suffix of the interpreter's language, unless it is given code instead."""
    for word in map(file_of, arguments):
        if _CODE.fullmatch(word):
            return None
        if _VERSION.sub("", program) in INTERPRETERS.get(posixpath.splitext(word)[1], ()):
            return _script(word, arguments)
    return None


def file_of(argument: str) -> str:
    """The path that an argument names, also in the option with which Rscript starts R."""
    return argument.removeprefix("--file=")


def by_jupyter(program: str, arguments: Sequence[str]) -> Launch | None:
    """The notebook that a program of JUPYTER executes."""
    executes = program in ("papermill", "jupyter-execute") or {"execute", "--execute"}.intersection(arguments)
    notebooks = [word for word in arguments if word.endswith(".ipynb")]
    return Launch("script", notebooks[0]) if executes and notebooks else None


def _wrapped(arguments: Sequence[str]) -> Launch | None:
    """Takes the first word that can be a command: a table of every wrapper's options would be too long."""
    for index, word in enumerate(arguments):
        name = posixpath.basename(word)
        if word in ("-m", "--module"):
            return _module(arguments[index + 1 :])
        if word.startswith("./") or word.endswith(_SCRIPT_SUFFIXES):
            return _script(word, arguments)
        is_known = name in SHELLS or name in _WRAPPERS or name == "papermill" or is_other_interpreter(name)
        if is_known or PYTHON.fullmatch(name):
            return launched(arguments[index:])
    return None
