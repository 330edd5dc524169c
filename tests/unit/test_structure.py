"""docs/maintainers/design.md shows the structure of the code: its folders, and which floor imports which."""

import ast
import re
from collections import Counter
from collections.abc import Iterator
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

import pytest

from pytest_super.model.protocols.registry import CLIENT_HEADERS, KEY_HEADERS, PROTOCOLS, ROUTES
from tests.pages import page_path

ROOT = Path(__file__).parents[2]
PACKAGE = "pytest_super"
DESIGN = page_path("design.md").read_text(encoding="utf-8")


def name_of(file: Path) -> str:
    return ".".join(file.relative_to(ROOT).with_suffix("").parts).removesuffix(".__init__")


MODULES = {name_of(file): file for file in sorted((ROOT / PACKAGE).rglob("*.py"))}
Code = dict[str, list[ast.AST]]
Graph = dict[str, set[str]]


@pytest.fixture(scope="module")
def code() -> Code:
    """All nodes of each module, with itself as the first. To parse and walk them takes seconds."""
    texts = {name: file.read_text(encoding="utf-8") for name, file in MODULES.items()}
    return {name: list(ast.walk(ast.parse(text))) for name, text in texts.items()}


@pytest.fixture(scope="module")
def graph(code: Code) -> Graph:
    return {name: set(imports_of(name, nodes)) - {name} for name, nodes in code.items()}


def imports_of(importer: str, nodes: list[ast.AST]) -> Iterator[str]:
    """Our modules that a module imports anywhere: at its top, in a function, for types only."""
    for node in nodes:
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names if alias.name.partition(".")[0] == PACKAGE)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{importer}:{node.lineno}: imports are absolute"
            module = node.module or ""
            if module.partition(".")[0] == PACKAGE:
                whole = [f"{module}.{alias.name}" for alias in node.names]
                yield from (name if name in MODULES else module for name in whole)


def tree_of_the_page() -> list[str]:
    """The lines of the page's tree: a folder's content is indented below it."""
    found = re.search(r"\n## Floors and folders\n.*?```text\n(.*?)```", DESIGN, re.DOTALL)
    assert found, "docs/maintainers/design.md has no tree below 'Floors and folders'"
    return found[1].splitlines()


def names_of(line: str) -> list[str]:
    """The folders and modules that a line of the tree describes."""
    return line.strip().partition("  ")[0].split(", ")


def floor_by_folder() -> dict[str, int]:
    """The number of each folder's floor, 0 for the lowest."""
    floors = [names_of(line) for line in reversed(tree_of_the_page()) if not line.startswith(" ")]
    return {name: number for number, names in enumerate(floors) for name in names}


def folder_of(module: str) -> str:
    """The first part of its name below the package, which is a name of a floor."""
    return module.split(".")[1]


def named_in_tree() -> set[str]:
    """The folders, and the modules in no folder, that the tree names."""
    parents, named = [PACKAGE], set()
    for line in tree_of_the_page():
        depth = (len(line) - len(line.lstrip())) // 2
        del parents[depth + 1 :]
        inside = [".".join([*parents, name]) for name in names_of(line)]
        named.update(inside)
        parents.append(names_of(line)[-1])
    return named


def is_named(module: str) -> bool:
    """Whether a module is a folder, or in no folder. The docstrings of the others say what they are for."""
    return module != PACKAGE and (MODULES[module].name == "__init__.py" or module.count(".") == 1)


def strings_of(nodes: list[ast.AST]) -> str:
    """The strings of a module's code, without its docstrings."""
    prose = {id(node.value) for node in nodes if isinstance(node, ast.Expr)}
    found = [node.value for node in nodes if isinstance(node, ast.Constant) and id(node) not in prose]
    return "\0".join(value.lower() for value in found if isinstance(value, str))


def declared_by_protocols() -> set[str]:
    """The paths, the headers, the addresses and the variables of all protocols."""
    paths = {route.path.rpartition("{model}")[2] for route in ROUTES}
    variables = {name for each in PROTOCOLS for name in (*each.environment, *each.site.base_variables)}
    models = {each.models for each in PROTOCOLS}
    addresses = {each.site.base_url for each in PROTOCOLS}
    return {text.lower() for text in (*paths, *models, *CLIENT_HEADERS, *KEY_HEADERS, *variables, *addresses)}


def test_nothing_but_the_registry_imports_a_protocol_of_the_model_door(graph: Graph) -> None:
    folder = f"{PACKAGE}.model.protocols"
    shared = {
        f"{folder}.{name}"
        for name in ("canonical", "common", "exchange", "folds", "openai", "protocol", "registry", "route")
    }
    importing = {
        f"{importer} imports {imported}"
        for importer, imports in graph.items()
        for imported in imports - shared
        if imported.startswith(folder) and importer not in (f"{folder}.registry", f"{folder}.common")
        # The parts of one belong together.
        if importer.split(".")[:4] != imported.split(".")[:4]
    }
    assert importing == set()


def test_what_a_protocol_declares_is_stated_nowhere_else(code: Code) -> None:
    declared = declared_by_protocols()
    stated = {
        f"{name} states {text}"
        for name, nodes in code.items()
        # An agent's file says by which variables its own program is told.
        if not name.startswith((f"{PACKAGE}.model.protocols.", f"{PACKAGE}.programs.installed."))
        for strings in [strings_of(nodes)]
        for text in declared
        if text in strings
    }
    assert stated == set()


def test_no_modules_import_each_other_in_a_circle(graph: Graph) -> None:
    circle: list[str] = []
    try:
        TopologicalSorter(graph).prepare()
    except CycleError as error:
        circle = error.args[1]
    assert circle == []


def test_no_module_imports_one_of_a_floor_above_its_own(graph: Graph) -> None:
    floors = floor_by_folder()
    upward = [
        f"{importer} imports {imported}"
        for importer, names in graph.items()
        for imported in names
        if PACKAGE not in (importer, imported)
        and folder_of(importer) != folder_of(imported)
        and floors[folder_of(importer)] <= floors[folder_of(imported)]
    ]
    assert upward == []


def test_what_runs_inside_a_sandbox_imports_nothing_else_of_ours(graph: Graph) -> None:
    inside = f"{PACKAGE}.kernel.inside"
    outward = {
        f"{importer} imports {imported}"
        for importer, names in graph.items()
        for imported in names
        if importer.startswith(inside) and not imported.startswith(inside)
    }
    assert outward == set()


def test_the_tree_of_the_page_names_every_folder_and_no_other() -> None:
    assert named_in_tree() == set(filter(is_named, MODULES))


def test_every_module_says_in_a_docstring_what_it_is_for(code: Code) -> None:
    trees = [(name, tree) for name, (tree, *_) in code.items() if isinstance(tree, ast.Module)]
    assert [name for name, tree in trees if tree.body and not ast.get_docstring(tree)] == []


def test_no_module_imports_private_names_of_pytest() -> None:
    for file in MODULES.values():
        assert not re.search(r"^\s*(?:from|import) _pytest\b", file.read_text(encoding="utf-8"), re.MULTILINE)


# How large the project may be, see "Style" in CONTRIBUTING.md. By folder of the package, "." for modules in
# none: the lines of code, without blanks, comments, docstrings and imports, and all lines.
BUDGET = {
    ".": (985, 1625),
    "agents": (1414, 2408),
    "authoring": (4446, 7137),
    "commands": (1035, 1688),
    "functions": (1270, 2049),
    "gate": (1459, 2569),
    "grading": (604, 1008),
    "integrity": (332, 584),
    "kernel": (5660, 9574),
    "metrics": (1461, 2616),
    "model": (3824, 6304),
    "platform": (310, 535),
    "programs": (1166, 1855),
    "report": (2553, 4165),
    "session": (2696, 4731),
    "snapshots": (269, 507),
    "sources": (500, 843),
    "store": (1009, 1817),
    "tasks": (1553, 2536),
    "trial": (1200, 2010),
}
# What the table may add up to, the lines of tests, and the words of README.md and docs.
MOST = {"code": 33_746, "lines": 56_561, "tests": 45_690, "words": 38_612}


def code_lines(text: str, nodes: list[ast.AST]) -> int:
    """Lines without blanks, comments, docstrings and imports."""
    lines = dict(enumerate(map(str.strip, text.splitlines()), 1))
    for node in nodes:
        is_docstring = isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)
        if isinstance(node, ast.stmt) and (is_docstring or isinstance(node, ast.Import | ast.ImportFrom)):
            lines.update(dict.fromkeys(range(node.lineno, (node.end_lineno or node.lineno) + 1), ""))
    return sum(bool(line) and not line.startswith("#") for line in lines.values())


def sizes(nodes: Code) -> dict[str, tuple[int, int]]:
    """The lines of code and all lines of each folder of the package."""
    code, lines = Counter[str](), Counter[str]()
    for name, file in MODULES.items():
        folder, *inner = file.relative_to(ROOT / PACKAGE).parts
        folder = folder if inner else "."
        text = file.read_text(encoding="utf-8")
        code[folder] += code_lines(text, nodes[name])
        lines[folder] += len(text.splitlines())
    return {folder: (code[folder], lines[folder]) for folder in sorted(lines)}


def test_no_folder_outgrows_its_budget(code: Code) -> None:
    found = sizes(code)
    larger = {
        name: size for name, size in found.items() if any(map(int.__gt__, size, BUDGET.get(name, (0, 0))))
    }
    assert larger == {}, "shorten other code, and lower its row by what you raise these"


def test_the_budget_adds_up_to_no_more_than_it_did() -> None:
    tests = sum(len(file.read_text(encoding="utf-8").splitlines()) for file in (ROOT / "tests").rglob("*.py"))
    pages = [ROOT / "README.md", *(ROOT / "docs").rglob("*.md")]
    found = {
        "code": sum(code for code, _ in BUDGET.values()),
        "lines": sum(lines for _, lines in BUDGET.values()),
        "tests": tests,
        "words": sum(len(page.read_text(encoding="utf-8").split()) for page in pages),
    }
    assert {name: count for name, count in found.items() if count > MOST[name]} == {}


def test_no_module_is_longer_than_a_few_screens() -> None:
    lengths = {name: len(file.read_text(encoding="utf-8").splitlines()) for name, file in MODULES.items()}
    assert {name: length for name, length in lengths.items() if length > 300} == {}


def test_nothing_that_runs_imports_what_another_module_has_for_types_only(code: Code) -> None:
    # A type checker sees no difference.
    for_types, imported = set(), set()
    for name, nodes in code.items():
        blocks = [node for node in nodes if getattr(getattr(node, "test", 0), "id", "") == "TYPE_CHECKING"]
        hidden = {node for block in blocks for node in ast.walk(block)}
        # The name that an import binds has the attribute `name`, the one of an assignment `id`.
        for_types |= {(name, getattr(node, "name", None) or getattr(node, "id", None)) for node in hidden}
        runs = [node for node in nodes if isinstance(node, ast.ImportFrom) and node not in hidden]
        imported |= {(node.module, alias.name) for node in runs for alias in node.names}
    assert imported & for_types == set()
