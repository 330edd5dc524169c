"""Finds the scripts that the cells of a notebook run, by shell lines, magics and Python calls."""

import ast
import re
import shlex
import warnings
from collections.abc import Sequence

from pytest_super.metrics.script_runs.places import UNKNOWN, join
from pytest_super.metrics.script_runs.shell import ScriptRun, Shell, commands, module_paths

_SHELL_MAGICS = frozenset({"bash", "sh", "script", "system", "sx", "!"})
_CODE_MAGICS = frozenset({"time", "timeit", "prun", "capture"})
# A magic without `%`; not `run = 1` or `run (x)`, which are Python.
_AUTOMAGIC = re.compile(r"(?:cd|run|pushd) +[^=(\s]\S*.*|cd")
_SHELL_CALLS = frozenset({"os.system", "os.popen", "subprocess.getoutput", "subprocess.getstatusoutput"}) | {
    f"get_ipython().{name}" for name in ("system", "getoutput", "system_raw", "system_piped")
}
_PROCESS_CALLS = frozenset(f"subprocess.{name}" for name in ("run", "call", "check_call", "check_output"))
# A Popen can outlive its cell if the cell uses none of these.
_WAITS = frozenset({"wait", "communicate", "stdout", "poll"})
_RUN_OPTIONS_WITH_VALUE = ("-l", "-s", "-T", "-D")


class Notebook:
    """What the cells of one kernel leave behind. Read them in the order in which they ran."""

    def __init__(self) -> None:
        self.folder = ""
        self.imported: dict[str, str] = {}
        """The full names of imported modules and functions, by the name that cells use."""

    def read(self, source: str) -> list[ScriptRun]:
        """The scripts that a cell runs. An invalid cell runs nothing."""
        reader = _CellReader(self)
        reader.read(source)
        return reader.runs


MAX_LINES = 400
MAX_CHARACTERS = 50_000
# IPython reads a cell again for each line that it translates: these lines times the characters.
MAX_WORK = 1_000_000
_TRANSLATED = re.compile(r"^[ \t]*+[!?%,;/]|=[ \t]*+[!%]|\?[ \t]*+$", re.MULTILINE)


def as_python(source: str) -> ast.Module | None:
    """The cell as IPython translates it into Python; None if it is invalid, or too long to be read.

    Python's parser takes a thousand times the memory of a text. A long cell could delay the scoring for
    hours, or take all memory of the host.
    """
    if source.count("\n") > MAX_LINES or len(source) > MAX_CHARACTERS:
        return None
    if len(_TRANSLATED.findall(source)) * len(source) > MAX_WORK:
        return None
    from IPython.core.inputtransformer2 import TransformerManager

    if _AUTOMAGIC.fullmatch(source.strip()):
        source = f"%{source.strip()}"
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            return ast.parse(TransformerManager().transform_cell(source))  # type: ignore[no-untyped-call]
        except (SyntaxError, ValueError, RuntimeError, MemoryError):  # RecursionError is a RuntimeError
            return None


class _CellReader(ast.NodeVisitor):
    def __init__(self, notebook: Notebook) -> None:
        self.runs: list[ScriptRun] = []
        self._notebook = notebook
        self._called: set[str] = set()
        self._waits = False

    def read(self, source: str) -> None:
        tree = as_python(source)
        if tree is None:
            return
        nodes = list(ast.walk(tree))
        self._waits = any(isinstance(node, ast.Attribute) and node.attr in _WAITS for node in nodes)
        try:
            self._called = {ast.unparse(node.func) for node in nodes if isinstance(node, ast.Call)}
            self.visit(tree)
        # A cell can be nested deeper than the stack.
        except RecursionError:
            return

    def visit_Import(self, node: ast.Import | ast.ImportFrom) -> None:
        prefix = f"{node.module}." if isinstance(node, ast.ImportFrom) else ""
        for alias in node.names:
            self._notebook.imported[alias.asname or alias.name] = f"{prefix}{alias.name}"

    visit_ImportFrom = visit_Import

    def visit_FunctionDef(self, node: ast.FunctionDef) -> None:
        if node.name in self._called:
            self.generic_visit(node)

    def visit_Lambda(self, node: ast.Lambda) -> None:
        """A lambda's body does not run where it is written."""

    def visit_Call(self, node: ast.Call) -> None:
        self.generic_visit(node)
        first, dot, rest = ast.unparse(node.func).partition(".")
        function = f"{self._notebook.imported.get(first, first)}{dot}{rest}"
        texts = [text_of(argument) for argument in node.args]
        if function == "exec":
            # `exec(open("train.py").read())`
            calls = [child for child in ast.walk(node) if isinstance(child, ast.Call) and child.args]
            for call in calls:
                if ast.unparse(call.func) == "open":
                    self._run(text_of(call.args[0]))
        elif not texts:
            return
        elif function in _SHELL_CALLS:
            self._read_shell(texts[0])
        elif function in _PROCESS_CALLS or (function == "subprocess.Popen" and self._waits):
            self._read_process(node)
        elif function == "os.chdir":
            self._change_folder(texts[0])
        elif function == "runpy.run_path":
            self._run(texts[0])
        elif function == "runpy.run_module":
            self._run_module(texts[0])
        elif function in ("get_ipython().run_line_magic", "get_ipython().run_cell_magic"):
            self._read_magic(*texts)

    def _run(self, path: str) -> None:
        """The kernel itself runs the script."""
        self.runs.append(ScriptRun(join(self._notebook.folder, path), False))

    def _run_module(self, name: str) -> None:
        self.runs += [ScriptRun(path, False) for path in module_paths(name)]

    def _change_folder(self, path: str) -> None:
        self._notebook.folder = join(self._notebook.folder, path)

    def _read_shell(self, text: str, folder: str | None = None) -> None:
        shell = Shell(self._notebook.folder if folder is None else folder)
        shell.read(text)
        self.runs += shell.runs

    def _read_process(self, node: ast.Call) -> None:
        folder = next((text_of(word.value) for word in node.keywords if word.arg == "cwd"), "")
        text = shlex.join(words_of(node.args[0])) or text_of(node.args[0])
        self._read_shell(text, join(self._notebook.folder, folder))

    def _read_magic(self, name: str, line: str = "", body: str | None = None) -> None:
        if body is not None and name in _SHELL_MAGICS:
            if "--bg" not in line:
                self._read_shell(body)
        elif name in _CODE_MAGICS:
            self.runs += self._notebook.read(body if body is not None else line)
        elif body is None:
            self._read_line_magic(name, line)

    def _read_line_magic(self, name: str, line: str) -> None:
        if name in _SHELL_MAGICS:
            self._read_shell(line)
        elif name == "cd" or name == "pushd":
            words = [word for word in _words(line) if not word.startswith("-")]
            self._change_folder(words[0] if words else "~")
        elif name == "run":
            self._read_run(_words(line))

    def _read_run(self, words: Sequence[str]) -> None:
        skip = False
        for index, word in enumerate(words):
            if word == "-m" and words[index + 1 :]:
                self._run_module(words[index + 1])
                return
            if not skip and not word.startswith("-"):
                # `%run` adds the suffix itself.
                self._run(word if "." in word.rpartition("/")[2] else f"{word}.py")
                return
            skip = word in _RUN_OPTIONS_WITH_VALUE


def _words(line: str) -> tuple[str, ...]:
    return next(commands(line)).words


def text_of(node: ast.expr) -> str:
    """The text that is written there, with `{?}` for each part that only the running cell knew."""
    match node:
        case ast.Constant(value=str(text)):
            return text
        case ast.JoinedStr(values=parts):
            return "".join(map(text_of, parts))
        case ast.FormattedValue(value=inner):
            return text_of(inner)
        case ast.BinOp(left=left, op=ast.Add(), right=right):
            return text_of(left) + text_of(right)
        case ast.Attribute(attr="executable"):
            return "python"
    return UNKNOWN


def words_of(node: ast.expr) -> list[str]:
    """The words of a list, up to its first part that is not written there."""
    match node:
        case ast.List(elts=items) | ast.Tuple(elts=items):
            return list(map(text_of, items))
        case ast.BinOp(left=left, op=ast.Add(), right=right) if words := words_of(left):
            return words + words_of(right)
    return []
