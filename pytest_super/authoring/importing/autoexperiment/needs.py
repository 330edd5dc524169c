"""What commands and code need that a checkout or a machine may lack, as far as their text shows."""

from __future__ import annotations

import posixpath
import re
from collections.abc import Iterator, Mapping
from pathlib import Path

from pytest_super.metrics.script_runs.shell import commands

_GPU = re.compile(r"--nv\b|--gpus?\b|\w*cuda\w*", re.IGNORECASE)
_GPU_CODE = re.compile(rb"""^[^#\n]*?(?:\.cuda\(|(["'])cuda(?::\d+)?\1)""", re.MULTILINE)
_FOLDER = re.compile(r"[\w./][\w./+-]*")
_PATH = re.compile(r"~?[\w./+-]*\w/?")
_SUFFIX = re.compile(
    r"\.(py|sh|ipynb|json|jsonl|ya?ml|csv|tsv|txt|pt|pth|ckpt|bin|onnx|safetensors|npy|npz|pkl|h5|hdf5|mat|zip|tar"
    r"|gz|tgz|png|jpe?g)"
)
# Options that name what a command writes.
_OUTPUT = re.compile(r"--?(o|out.*|save.*|log.*|result.*)", re.IGNORECASE)
_SYSTEM = ("/dev/", "/usr/", "/bin/", "/proc/", "/tmp/")
# Their words are not read, or are what they make.
_OTHER = frozenset({"echo", "printf", "export", "mkdir", "rm", "touch", "pip", "pip3", "conda", "tee"})


def gpu_words(command: str) -> list[str]:
    return list(dict.fromkeys(_GPU.findall(command)))


def gpu_lines(files: Mapping[str, Path]) -> list[str]:
    """The first line of each Python file that uses a GPU without asking whether there is one."""
    lines = []
    for name in (name for name in files if name.endswith(".py")):
        code = readable(files[name])
        if (found := _GPU_CODE.search(code)) and b"cuda.is_available" not in code:
            line = code.count(b"\n", 0, found.end()) + 1
            lines.append(f"{name}:{line}")
    return lines


def readable(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError:
        # To copy it fails too, with a message.
        return b""


def missing_paths(command: str, code: Path) -> list[str]:
    """The paths that a command names and that are not in the code, as the command writes them."""
    missing: list[str] = []
    folder = ""
    for one in commands(command):
        words = list(one.words)
        if len(words) == 2 and words[0] == "cd":
            # After `cd $HOME` no path is known.
            if not _FOLDER.fullmatch(words[1]):
                break
            folder = posixpath.join(folder, words[1])
            missing += [] if is_there(folder, code) else [words[1]]
        elif words and words[0] not in _OTHER:
            missing += [word for word in paths_in(words) if not is_there(posixpath.join(folder, word), code)]
    return list(dict.fromkeys(missing))


def paths_in(words: list[str]) -> Iterator[str]:
    option = ""
    for word in words:
        name, separator, value = word.partition("=")
        text = value if separator else word
        if not _OUTPUT.fullmatch(name if separator else option) and is_path(text):
            yield text
        option = word if word.startswith("-") else ""


def is_path(text: str) -> bool:
    if text.startswith(("-", *_SYSTEM)) or not _PATH.fullmatch(text) or not re.search("[A-Za-z]", text):
        return False
    return "/" in text or _SUFFIX.fullmatch(posixpath.splitext(text)[1]) is not None


def is_there(path: str, code: Path) -> bool:
    inside = posixpath.normpath(path)
    return not inside.startswith(("/", "~", "..")) and (code / inside).exists()
