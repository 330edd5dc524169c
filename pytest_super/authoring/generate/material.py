"""The parts of a repository that the model sees: of bounded length, between tags that they cannot contain."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from pytest_super.sources.tree import legible

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pytest_super.sources.tree import Tree

# Characters.
LONGEST_README = 30_000
LONGEST_LIST = 8_000
LONGEST_CODE = 12_000
LONGEST_LINE = 200
LINES_PER_FILE = 8
CUT = "[… cut here]"

# Possessive quantifiers, for the reason given in `screening`.
_MARK = re.compile(r"<(\s*+/?\s*+(?:repository|readme|scripts|code)\s*+)>", re.IGNORECASE)
_RELEVANT = re.compile(
    r"load_dataset|from_pretrained|add_argument\([^)]*(data|task|model)|(data_?set|task|model)_(name|path|dir)|"
    r"\b(glue|torchvision\.datasets|fetch_\w+|load_\w+)\b|\bcuda\b|bitsandbytes|deepspeed|\bpeft\b|lora|"
    r"flash_attn|triton|\bapex\b|nvidia|multi_?gpu",
    re.IGNORECASE,
)


def for_questions(name: str, tree: Tree) -> str:
    return "\n\n".join([*common(name, tree), part("code", code_lines(tree), LONGEST_CODE)])


def for_task(name: str, tree: Tree) -> str:
    return "\n\n".join(common(name, tree))


def common(name: str, tree: Tree) -> list[str]:
    return [
        part("repository", name, LONGEST_LINE),
        part("readme", tree.readme, LONGEST_README),
        part("scripts", "\n".join(tree.scripts), LONGEST_LIST),
    ]


def part(tag: str, text: str, most: int) -> str:
    """The beginning of `text`, up to a whole line, between tags."""
    # A README must not close its own part. Tags are replaced, because deleting one can create another.
    text = _MARK.sub(r"[\1]", text)
    if len(text) > most:
        # `chr(10)`, because Python 3.11 allows no backslash within the braces of an f-string.
        text = f"{text[:most].rsplit(chr(10), 1)[0]}\n{CUT}"
    return f"<{tag}>\n{text}\n</{tag}>"


def code_lines(tree: Tree) -> str:
    return "\n".join(
        line for path, data in tree.contents((".py", ".sh")) for line in relevant_lines(path, data)
    )


def relevant_lines(path: str, data: bytes) -> Iterator[str]:
    """The first lines of a file that are about data, models or devices."""
    lines = (line.strip()[:LONGEST_LINE] for line in legible(data).split("\n"))
    found = (line for line in lines if _RELEVANT.search(line))
    for line, _ in zip(found, range(LINES_PER_FILE), strict=False):
        yield f"{path}: {line}"
