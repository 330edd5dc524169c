"""What `model/` uses of the libraries that it asks providers with: their documented names alone."""

import ast
from pathlib import Path

import pytest

import pytest_super.model

MODULES = sorted(Path(pytest_super.model.__file__).parent.rglob("*.py"))
LIBRARIES = {"litellm", "openai", "httpx"}
# litellm documents both.
SETTINGS = {"litellm.suppress_debug_info", "litellm.telemetry"}

# Our own objects, and `os._exit`, which Python documents.
OURS = ("self", "cls", "os")
FRAMES = ("f_locals", "ag_frame", "cr_frame", "gi_frame")


def trespasses(source: str) -> list[str]:
    """Private names of other objects, names within the libraries' packages, and attributes set on them."""
    return [found for node in ast.walk(ast.parse(source)) for found in trespasses_of(node)]


def trespasses_of(node: ast.AST) -> list[str]:
    if isinstance(node, ast.Attribute):
        is_private = node.attr.startswith("_") and not node.attr.endswith("__")
        if (is_private and ast.unparse(node.value) not in OURS) or node.attr in FRAMES:
            return [ast.unparse(node)]
        is_set = isinstance(node.ctx, ast.Store | ast.Del)
        if is_set and ast.unparse(node.value).rpartition(".")[2] in LIBRARIES:
            return [] if ast.unparse(node) in SETTINGS else [ast.unparse(node)]
    if isinstance(node, ast.ImportFrom) and (node.module or "").partition(".")[0] in LIBRARIES:
        return [str(node.module)]
    if isinstance(node, ast.Import):
        return [
            each.name for each in node.names if each.name.partition(".")[0] in LIBRARIES and "." in each.name
        ]
    if isinstance(node, ast.Call) and ast.unparse(node.func) in ("setattr", "getattr", "import_module"):
        return [ast.unparse(node)] if any(map(is_private_text, node.args)) else []
    # Parameters of a call.
    return [str(node.arg)] if isinstance(node, ast.keyword) and str(node.arg).startswith("_") else []


def is_private_text(node: ast.expr) -> bool:
    text = node.value if isinstance(node, ast.Constant) else None
    return isinstance(text, str) and (text.startswith("_") or text in (*LIBRARIES, *FRAMES))


@pytest.mark.parametrize("path", MODULES, ids=lambda path: path.stem)
def test_the_libraries_are_asked_by_their_documented_names_alone(path: Path) -> None:
    assert trespasses(path.read_text(encoding="utf-8")) == []


def test_one_module_alone_imports_litellm() -> None:
    imported = [path.stem for path in MODULES if "import litellm\n" in path.read_text(encoding="utf-8")]
    assert imported == ["known_model"]


@pytest.mark.parametrize(
    "line",
    [
        "response._hidden_params['response_cost'] = 1",
        "getattr(below, '_hidden_params', None)",
        "litellm.completion = mine",
        "self.litellm.completion = mine",
        "httpx.Response.aiter_bytes = mine\nhttpx.Client = mine",
        "from litellm.llms.custom_httpx.http_handler import AsyncHTTPHandler",
        "import openai.resources.chat",
        "lines.ag_frame.f_locals",
        "acompletion(_skip_mcp_handler=True)",
    ],
)
def test_such_a_line_would_be_seen(line: str) -> None:
    assert trespasses(line)
