"""The pages of the documentation and their fenced blocks."""

import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parents[1]
PAGES = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").rglob("*.md"))]
FENCE = re.compile(
    r"(?:^<!-- (?P<mark>.+?) -->\n)?^```(?P<language>\w*)\n(?P<text>.*?)^```$", re.MULTILINE | re.DOTALL
)


@dataclass(frozen=True)
class Block:
    page: str
    mark: str
    language: str
    text: str


def blocks_of(path: Path) -> list[Block]:
    found = FENCE.finditer(path.read_text(encoding="utf-8"))
    return [Block(path.name, match["mark"] or "", match["language"], match["text"]) for match in found]


BLOCKS = [block for path in PAGES for block in blocks_of(path)]


def blocks_in(language: str) -> list[Any]:
    chosen = [block for block in BLOCKS if block.language == language]
    return [pytest.param(block, id=f"{block.page}-{number}") for number, block in enumerate(chosen)]


def page_path(name: str) -> Path:
    """A page of the documentation, by the name of its file."""
    (found,) = (ROOT / "docs").rglob(name)
    return found


def example(file: str, name: str) -> str:
    (found,) = [block for block in BLOCKS if block.page == file and block.mark == f"test: {name}"]
    return found.text
