"""Parts of the paper and the code for the prompt of a function: found by its words, or as stated."""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Iterable, Iterator

from pytest_super.functions.source import PythonSource, SourceError, definitions, find
from pytest_super.kernel.cell import SandboxLostError
from pytest_super.kernel.files import SandboxFiles
from pytest_super.model.token_estimate import CHARACTERS_PER_TOKEN
from pytest_super.option_types import Retrieval
from pytest_super.tasks.public_task import MissingFunction, PublicTask
from pytest_super.words import clipped, gap

ORACLE, SEARCH = "oracle", "search"
# As in the published agent: so many parts of the paper, and so many of the code.
MOST_PARTS = 2
PART_CHARACTERS = 3000
# Of the repository's files only so many, each of at most this size, are searched.
MOST_FILES, LARGEST_FILE = 500, 200_000
_WORD = re.compile(r"[A-Za-z]+|\d+")
_DEFINITION = re.compile(r"^(?=(?:async\s+)?def |class |@)", re.MULTILINE)


def context_of(
    files: SandboxFiles, task: PublicTask, function: MissingFunction, data: bytes, retrieval: Retrieval
) -> list[str]:
    """What the prompt has besides the task: parts that are found, and the function's file."""
    characters = retrieval.tokens * CHARACTERS_PER_TOKEN
    parts = parts_for(files, task, function, retrieval.source)
    # At least half is left for the file.
    context = [clipped(part, characters // 2 // len(parts)) for part in parts]
    file = clipped_around(function, data, characters - sum(map(len, context)))
    return [*context, f"Write `{function.name}`, which is in this file:\n{file}"]


def parts_for(files: SandboxFiles, task: PublicTask, function: MissingFunction, source: str) -> list[str]:
    """Texts with a heading each."""
    if source == ORACLE:
        return [f"From the paper:\n{function.passage}"] if function.passage else []
    if source != SEARCH:
        return []
    sought = f"{function.name} {function.description}"
    paper = [f"From the paper:\n{part}" for part in best(sought, paragraphs(read_text(files, task.paper)))]
    code = best(sought, code_parts(files, task.folder or ".", function.file))
    return [*paper, *(f"From the code:\n{part}" for part in code)]


def best(sought: str, parts: Iterable[str]) -> list[str]:
    """The parts that share the rarest words with a text, best first. Parts that share none are left out."""
    known = list(parts)
    counts = [Counter(words(part)) for part in known]
    wanted = set(words(sought))
    rarity = {word: math.log(1 + len(known) / (1 + sum(word in one for one in counts))) for word in wanted}
    scores = [score(wanted, one, rarity) for one in counts]
    ranked = sorted(range(len(known)), key=lambda index: -scores[index])
    return [known[index] for index in ranked[:MOST_PARTS] if scores[index]]


def score(wanted: set[str], counts: Counter[str], rarity: dict[str, float]) -> float:
    length = math.sqrt(counts.total() + 1)
    return sum(math.log(1 + counts[word]) * rarity[word] for word in wanted) / length


def words(text: str) -> Iterator[str]:
    """`mean_value` and `MeanValue` have the same words."""
    for found in _WORD.findall(re.sub(r"([a-z])([A-Z])", r"\1 \2", text)):
        yield found.lower()


def paragraphs(text: str) -> Iterator[str]:
    """Pieces of at most PART_CHARACTERS, cut between paragraphs where possible."""
    piece = ""
    for paragraph in re.split(r"\n\s*\n", text):
        if piece and len(piece) + len(paragraph) > PART_CHARACTERS:
            yield piece
            piece = ""
        piece = f"{piece}\n\n{paragraph}".strip()
        while len(piece) > PART_CHARACTERS:
            yield piece[:PART_CHARACTERS]
            piece = piece[PART_CHARACTERS:]
    if piece:
        yield piece


def code_parts(files: SandboxFiles, folder: str, besides: str) -> Iterator[str]:
    """The top-level definitions of the Python files in a folder, but those of one file."""
    try:
        search = files.search(folder, name="*.py", hidden=False)
    except OSError:
        return
    for path in sorted(path for path, _ in search.found if path != besides)[:MOST_FILES]:
        for part in _DEFINITION.split(read_text(files, f"{search.folder}/{path}")):
            if part.strip():
                yield f"# {path}\n{part[:PART_CHARACTERS]}"


def read_text(files: SandboxFiles, path: str | None) -> str:
    """ "" for a file that cannot be read. Raises SandboxLostError."""
    try:
        return files.read(path, LARGEST_FILE).decode("utf-8", "replace") if path else ""
    except SandboxLostError:
        raise
    except OSError:
        return ""


def clipped_around(function: MissingFunction, data: bytes, characters: int) -> str:
    """The part of a file that has a function; its beginning and its end if the function cannot be found."""
    text = data.decode("utf-8", "replace")
    if len(text) <= characters:
        return text
    try:
        source = PythonSource.read(function.file, data)
        node = find(source, function.name.partition("@")[0], definitions(source)).node
        before = "".join(text.splitlines(keepends=True)[: node.lineno - 1])
    except SourceError:
        return clipped(text, characters)
    start = min(max(len(before) - characters // 3, 0), len(text) - characters)
    end = start + characters
    return "\n".join(filter(None, [gap(start), text[start:end], gap(len(text) - end)]))
