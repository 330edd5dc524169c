"""A notebook cell taken apart: its Python, its shell lines and its magics, without importing IPython."""

from __future__ import annotations

import ast
import re
import warnings
from dataclasses import dataclass, field

SHELL_CELLS = frozenset({"bash", "sh", "script", "system", "sx", "!"})
PYTHON_CELLS = frozenset({"time", "timeit", "prun", "capture", "python", "python3"})
TEXT_CELLS = frozenset({"html", "latex", "markdown", "javascript", "js", "svg"})

# So that no cell is too deep to follow when it is read far down in a stack, and followed elsewhere.
DEEPEST = 120

_CELL_MAGIC = re.compile(r"%%(?P<name>!|\w+)(?P<rest>.*)")
_LINE = re.compile(r"(?P<indent>\s*)(?P<target>[\w ,]+=\s*)?(?P<mark>[!%])(?P<text>.*)", re.DOTALL)
_HELP = re.compile(r"\s*\?|.*\?\s*$")
_TIMED = re.compile(r"(?:time|timeit|prun)\b(?:\s+-\w+(?:\s+\d+)?)*\s*")


@dataclass
class Parts:
    """What a cell holds. `python` is None where it is neither Python nor anything else that is known."""

    python: ast.Module | None = None
    shell: list[str] = field(default_factory=list)
    magics: list[str] = field(default_factory=list)
    """Line magics, without the mark; of cell magics those that name a file or a variable."""
    binds: bool = False
    """Whether a shell line or a magic gives its output to a name."""


def parts_of(source: str) -> Parts:
    """The parts of a cell; a text that no one can read is what `Parts` says of it."""
    first, _, body = source.strip("\n").partition("\n")
    magic = _CELL_MAGIC.match(first)
    if magic is None:
        return of_python(source)
    name, rest = magic["name"], magic["rest"].strip()
    if name in SHELL_CELLS:
        return Parts(ast.Module([], []), shell=[body])
    if name in ("writefile", "file"):
        return Parts(ast.Module([], []), magics=[f"writefile {rest}"])
    if name in TEXT_CELLS:
        return Parts(ast.Module([], []))
    if name not in PYTHON_CELLS:
        return Parts()
    inner = parts_of(body)
    inner.magics += [f"capture {rest}"] if name == "capture" else []
    return inner


def of_python(source: str) -> Parts:
    module = parsed(source)
    return Parts(module) if module is not None else of_mixed(source)


def of_mixed(source: str) -> Parts:
    """Of a cell with shell lines and magics among its Python."""
    parts = Parts()
    lines = []
    for line in joined_lines(source):
        match = _LINE.fullmatch(line)
        if match is None:
            lines.append("" if _HELP.fullmatch(line) else line)
            continue
        text = match["text"]
        lines.append(f"{match['indent']}{stand_in(parts, match['mark'], text, match['target'] or '')}")
    parts.python = parsed("\n".join(lines))
    return parts


def stand_in(parts: Parts, mark: str, text: str, target: str) -> str:
    """The Python that stands for a shell line or a magic, which is noted in `parts`."""
    if mark == "%" and (timed := _TIMED.match(text)):
        return f"{target}{text[timed.end() :]}" or "pass"
    (parts.shell if mark == "!" else parts.magics).append(text.lstrip("!"))
    parts.binds |= bool(target)
    return f"{target}None" if target else "pass"


def joined_lines(source: str) -> list[str]:
    """The lines, shell lines that end in a backslash with those that continue them."""
    lines: list[str] = []
    for line in source.split("\n"):
        if lines and lines[-1].endswith("\\") and _LINE.fullmatch(lines[-1]):
            lines[-1] = f"{lines[-1][:-1]} {line}"
        else:
            lines.append(line)
    return lines


def parsed(source: str) -> ast.Module | None:
    """None also where the code is nested deeper than it can be followed."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            module = ast.parse(source)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return None
    return module if depth_of(module) <= DEEPEST else None


def depth_of(module: ast.Module) -> int:
    depth = 0
    level: list[ast.AST] = [module]
    while level and depth <= DEEPEST:
        depth += 1
        level = [child for node in level for child in ast.iter_child_nodes(node)]
    return depth
