"""The SWE-agent's tools on published actions: windows, searches and refused edits."""

import re
from collections import Counter
from pathlib import Path

from pytest_super.agents.swe.tools import Editor, make_edit, refusal
from pytest_super.agents.swe.window import LARGEST, ToolRefused
from pytest_super.store.trajectory import Step
from tests.published.trajectories import expert_trajectories
from tests.unit.folder_kernel import FolderFiles

SPANS = "the published tool took lines that the file does not have, and put the text in some other place"

ZERO = "the published tool failed with a message of bash for lines that count from 0"

# Why what we show differs from what was published, and how often.
DIFFERENCES = {SPANS: 11, ZERO: 11}

WINDOWED = ("open", "goto", "scroll_up", "scroll_down", "create", "edit")

# So that a file of which a part is known only is not checked as Python.
UNCHECKED = "#"


class Replay(FolderFiles):
    """Has one file, of which those lines are known that a published observation shows."""

    path = ""
    lines: tuple[str, ...] = ()
    is_missing = False

    def resolve(self, path: str = ".") -> str:
        return self.path + UNCHECKED if path != "." else "."

    def read(self, path: str, limit: int = LARGEST) -> bytes:
        if self.is_missing:
            raise FileNotFoundError(2, "No such file or directory", path)
        return "".join(f"{line}\n" for line in self.lines).encode()[: limit + 1]

    def write(self, path: str, data: bytes) -> None:
        assert path
        self.is_missing = False
        self.lines = tuple(data.decode().removesuffix("\n").split("\n"))


def window_in(text: str) -> tuple[str, int, dict[int, str]]:
    """Path, length and known lines of the file that a published text shows the window of."""
    header = re.search(r"^\[File: (.*) \((\d+) lines total\)\]$", text, re.MULTILINE)
    if header is None:
        return "", int(number[1]) if (number := re.search(r"equal to (\d+)$", text)) else 0, {}
    known = re.findall(r"^(\d+):(.*)$", text[header.end() :], re.MULTILINE)
    return header[1], int(header[2]), {int(number): line for number, line in known}


def lines_before(content: str, total: int, known: dict[int, str]) -> list[str]:
    """The lines of a file that had so many, and these, after the edit."""
    first, last, count = edit_of(content)
    grown = count - (last - first + 1)
    old = {number: line for number, line in known.items() if number < first}
    old |= {number - grown: line for number, line in known.items() if number >= first + count}
    was_behind_end = total < first - 1 + count
    before = total - (count if was_behind_end else grown)
    return [old.get(number, "") for number in range(1, before + 1)]


def edit_of(content: str) -> tuple[int, int, int]:
    """First and last line, and how many new ones; all 0 where it has no span."""
    span = re.match(r"edit (\d+):(\d+)\n", content)
    return (int(span[1]), int(span[2]), content.count("\n") - 1) if span else (0, 0, 0)


def prepare(file: Replay, step: Step) -> None:
    """Let the file be what it was when the published step was taken."""
    path, total, known = window_in(step.observation)
    file.path = path or file.path
    file.is_missing = step.observation.endswith((" created.\n", " not found\n"))
    if step.action.type == "edit":
        file.lines = tuple(lines_before(step.action.content, total, known))
    else:
        file.lines = tuple(known.get(number, "") for number in range(1, total + 1))


def comparable(shown: str, known: dict[int, str]) -> str:
    """Without lines that the published cleaning had removed, and without what we say more."""
    lines = [
        line for line in shown.splitlines() if not (m := re.match(r"(\d+):", line)) or int(m[1]) in known
    ]
    text = "\n".join(lines).replace(UNCHECKED + " (", " (").rstrip()
    return text.partition("\n")[0] if text.startswith("Usage: edit") else text


def published_tools() -> list[list[Step]]:
    found = [one.steps for one in expert_trajectories() if one.agent == "swe-agent"]
    assert len(found) == 45
    return found


def test_the_windows_are_those_of_the_published_runs(tmp_path: Path) -> None:
    same, differences = 0, Counter[str]()
    for steps in published_tools():
        file, editor = Replay(str(tmp_path)), Editor()
        for step in steps:
            if step.action.type not in WINDOWED or step.observation.startswith("Your proposed"):
                continue
            prepare(file, step)
            observation, _ = editor.tool(step.action)(file)  # type: ignore[arg-type]
            _, _, known = window_in(step.observation)
            if comparable(observation, known) == comparable(step.observation, known):
                same += 1
            elif "substring expression" in step.observation:
                differences[ZERO] += 1
            else:
                assert re.search("<start_line> must be from|<end_line> must not be less", observation), step
                differences[SPANS] += 1
    assert differences == DIFFERENCES
    assert same == 786


def rough(text: str, known: dict[int, str]) -> str:
    text = re.sub(r"^\(\d+ more lines above\)\n", "", text, flags=re.MULTILINE)
    return comparable(re.sub(r"(?s)(ERRORS:\n).*?(\n\nThis is)", r"\1\2", text), known)


def test_a_refused_edit_is_shown_as_in_the_published_runs() -> None:
    """But for counts of lines above, rounded up there, and for the error, which has its line here."""
    refused = [
        step for steps in published_tools() for step in steps if step.observation.startswith("Your proposed")
    ]
    wrong = []
    for step in refused:
        would_be, is_now = re.findall(r"-{49}\n(.*?)\n-{49}", step.observation, re.DOTALL)
        first, last, count = edit_of(step.action.content)
        path, total, known = window_in(is_now)
        _, total_after, known_after = window_in(would_be)
        lines = [known.get(number, "").encode() for number in range(1, total + 1)]
        after = [known_after.get(number, "").encode() for number in range(1, total_after + 1)]
        try:
            edit = make_edit(f"{first}:{last}", [""] * count, total)
        except ToolRefused:
            wrong.append((first, last))
            continue
        ours = refusal(SyntaxError("invalid syntax"), path, lines, after, edit)
        assert rough(ours, known | known_after) == rough(step.observation, known | known_after)
    assert (len(refused), wrong) == (222, [(1363, 367)])
