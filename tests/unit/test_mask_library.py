"""Every function of the standard library can be masked, alone and with others, and nothing else changes."""

import ast
import os
import random
import sysconfig
from collections.abc import Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path

import pytest

from pytest_super.functions.masking import MESSAGE, mask_file
from pytest_super.functions.source import PythonSource, SourceError, definitions

pytestmark = pytest.mark.filterwarnings("ignore::SyntaxWarning", "ignore::DeprecationWarning")
# Folders with Python files, separated as in PATH: the standard library, or unpacked packages.
FOLDERS = os.environ.get("SUPER_MASK_FOLDERS", "")
LIBRARY = Path(sysconfig.get_path("stdlib"))


def files() -> list[Path]:
    folders = [Path(one) for one in FOLDERS.split(os.pathsep) if one] or [LIBRARY]
    return sorted(path for one in folders for path in one.rglob("*.py") if "site-packages" not in path.parts)


class Library:
    """A file with the functions in it that have a body to mask."""

    def __init__(self, path: Path) -> None:
        self.name, self.data = str(path), path.read_bytes()
        self.source = PythonSource.read(self.name, self.data)
        self.known = {one.name: one for one in definitions(self.source)}

    def masked_text(self, names: Sequence[str]) -> str:
        """The masked file, of which the text before and after the targets is checked."""
        text = mask_file(self.source, names).data.decode(self.source.encoding)
        lines, targets = self.source.lines, [self.known[name].node for name in names]
        first, last = min(one.lineno for one in targets), max(one.end_lineno or 0 for one in targets)
        code = (n for n, line in enumerate(lines[last:], last) if line.strip() and line.lstrip()[0] != "#")
        is_same = text.startswith("".join(lines[: first - 1]))
        is_same = is_same and text.endswith("".join(lines[next(code, len(lines)) :]))
        # `is_same`, because pytest would show the difference of two long texts.
        assert is_same, (self.name, names)
        return text

    def check_tree(self, names: Sequence[str]) -> None:
        """Compare the syntax trees by other means than the package does."""
        new = ast.parse(self.masked_text(names).encode(self.source.encoding))
        original = ast.parse(self.data)
        chosen = {(self.known[name].node.lineno, self.known[name].node.col_offset) for name in names}
        for node in functions(original):
            if (node.lineno, node.col_offset) in chosen:
                node.body = kept(node)
        for node in functions(new):
            if any(isinstance(one, ast.Raise) and MESSAGE in ast.unparse(one) for one in node.body[-2:]):
                node.body = kept(node)
        is_same = ast.dump(original) == ast.dump(new)
        assert is_same, (self.name, names)


def functions(tree: ast.AST) -> Iterator[ast.FunctionDef | ast.AsyncFunctionDef]:
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            yield node


def kept(node: ast.FunctionDef | ast.AsyncFunctionDef) -> list[ast.stmt]:
    return node.body[: 1 if ast.get_docstring(node, clean=False) is not None else 0]


NOTHING = ("it is abstract", "it has no body", "it does nothing but raise")


def has_body(library: Library, name: str) -> bool:
    """Mask a function alone; whatever else prevents it is raised."""
    try:
        library.masked_text([name])
    except SourceError as error:
        if not str(error).endswith(NOTHING):
            raise
        return False
    return True


def combination(library: Library, names: Sequence[str], chance: random.Random) -> list[str]:
    """Some functions in any order, none of them in another one."""
    chosen: list[str] = []
    for name in chance.sample(names, len(names)):
        node = library.known[name].node
        others = [library.known[one].node for one in chosen]
        if all((node.end_lineno or 0) < one.lineno or (one.end_lineno or 0) < node.lineno for one in others):
            chosen.append(name)
    return chosen[: chance.randint(1, len(chosen))]


def check_file(path: Path, seed: int, most: int | None = None) -> int:
    """Mask each function of a file, or at most some, and three combinations of them. Returns their number."""
    chance = random.Random(seed)
    try:
        library = Library(path)
    except SourceError:
        return 0
    names = [name for name in list(library.known)[:most] if has_body(library, name)]
    for _ in range(3 if names else 0):
        library.check_tree(combination(library, names, chance))
    for name in names[:2]:
        library.check_tree([name])
    return len(names)


@pytest.mark.long
@pytest.mark.skipif(bool(FOLDERS), reason="SUPER_MASK_FOLDERS names other functions")
def test_functions_of_the_standard_library() -> None:
    chosen = random.Random(1).sample(files(), 20)
    assert sum(check_file(path, seed, most=4) for seed, path in enumerate(chosen)) > 40


@pytest.mark.skipif(not FOLDERS, reason="needs SUPER_MASK_FOLDERS, folders whose functions are all masked")
@pytest.mark.timeout(7200)
def test_every_function_of_some_folders(capsys: pytest.CaptureFixture[str]) -> None:
    with ProcessPoolExecutor() as pool:
        counts = list(pool.map(check_file, files(), range(len(files()))))
    with capsys.disabled():
        print(f"\n{sum(counts):,} functions of {sum(map(bool, counts)):,} files masked")
