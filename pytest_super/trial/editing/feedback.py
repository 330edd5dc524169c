"""The observations of edits. Where the published runs have a text, it is copied verbatim."""

from pytest_super.trial.editing.places import MOST, Place, best_place, end_of_line, near_places

# Characters shown above and below an excerpt; the excerpt itself can have twice as many. Two excerpts then
# stay below 50,000 characters, the part of the last observation that SUPER's agents see.
SIDE = 4000
CUT = "[...]"

DONE = (
    "Edit was successful. Here's the relevant content *after edit* for your inspection "
    "(you should check indentation is correct):\n{}"
)
SEVERAL = (
    "Found multiple ({}) occurrences of the <<<BEFORE_EDIT>>>  lines. Add 1-3 lines before or after these "
    "lines to replace to disambiguate.\n"
    "Here are the first two occurrences with additional context, did you mean one of these?"
)
NOT_FOUND = "Could not find the following lines to replace in the file content:\n```\n{}\n```"
NEAR = (
    "\nDid you mean to replace the following lines (notice leading/trailing whitespaces difference)?\n"
    "```\n{}\n```"
)
PARTIAL = "\nHere are partially matched lines:\n```\n{}\n```"


def done(data: bytes, place: Place, *, is_deletion: bool) -> str:
    """`data` is the edited file and `place` that of the new lines in it."""
    # A deletion leaves no new lines, so the line below is shown in their place.
    return DONE.format(excerpt(data, place, above=7, below=5 if is_deletion else 6))


def several(data: bytes, places: list[Place]) -> str:
    shown = [excerpt(data, place, above=2, below=2) for place in places[:2]]
    occurrences = [f"Occurrence {number}:\n```\n\n{text}\n```" for number, text in enumerate(shown, 1)]
    number_of_all = len(places) if len(places) < MOST else f"at least {MOST}"
    return "\n".join([SEVERAL.format(number_of_all), *occurrences])


def not_found(data: bytes, lines: bytes) -> str:
    text = NOT_FOUND.format(brief(lines.removesuffix(b"\n")))
    if near := near_places(data, lines):
        # The last one, as in the published runs.
        return text + NEAR.format(content(data, near[-1]))
    best = best_place(data, lines)
    return text + PARTIAL.format(content(data, best)) if best else text


def content(data: bytes, place: Place) -> str:
    return brief(data[place.start : place.end])


def excerpt(data: bytes, place: Place, *, above: int, below: int) -> str:
    """The text of the place, with whole lines around it."""
    start = data.rfind(b"\n", 0, place.start) + 1
    for _ in range(above):
        start = data.rfind(b"\n", 0, max(0, start - 1)) + 1
    end = nth_newline(data, place.end, below + 1)
    return tail(data[start : place.start]) + content(data, place) + head(data[place.end : end])


def nth_newline(data: bytes, at: int, number: int) -> int:
    """The position of the `number`-th newline from `at` on; the end of `data` if there are fewer."""
    for _ in range(number - 1):
        at = end_of_line(data, at)
    found = data.find(b"\n", at)
    return found if found >= 0 else len(data)


def brief(data: bytes) -> str:
    if len(data) <= 8 * SIDE and len(text := decoded(data)) <= 2 * SIDE:
        return text
    return f"{head(data)}\n{tail(data)}"


def head(data: bytes) -> str:
    text = decoded(data[: 4 * SIDE])
    return text if len(text) <= SIDE and len(data) <= 4 * SIDE else text[:SIDE] + CUT


def tail(data: bytes) -> str:
    text = decoded(data[-4 * SIDE :])
    return text if len(text) <= SIDE and len(data) <= 4 * SIDE else CUT + text[-SIDE:]


def decoded(data: bytes) -> str:
    return data.decode("utf-8", "replace").replace("\r\n", "\n")
