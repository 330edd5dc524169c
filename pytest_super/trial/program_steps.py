"""A program's calls of its model as steps: what the model thought and called, and what its tools printed.

The model door sees nothing else of what happens inside the program. A result of a tool is shown by the next
request, so a step is written then, or when the program has ended.
"""

import json
import re
import threading
from collections import deque
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from typing import Any

from pytest_super.errors import TrialEnded
from pytest_super.json_values import loaded, texts
from pytest_super.metrics.matching.landmark_matcher import LandmarkMatcher
from pytest_super.model.completion import Usage
from pytest_super.store.trajectory import MESSAGE, TOOL_CALL, Action, Step, now
from pytest_super.trial.step_log import StepLog

UNSEEN = "[No later request has shown what came of it.]"
ESCAPED_QUOTE = re.compile(r"""\\(["'])""")


@dataclass(slots=True)
class PendingCall:
    """A call of a tool whose result no request has shown yet."""

    content: str
    source: str
    """What the call says itself: a tool that prints it achieves nothing."""
    thought: str
    started: str
    tokens: dict[str, int]


class ProgramSteps:
    """Makes steps of the exchanges of one program. `take` is called in several threads at once."""

    def __init__(self, log: StepLog, landmarks: LandmarkMatcher, query: str) -> None:
        """`query` is the task's: a tool that prints it achieves nothing."""
        self._log = log
        self._landmarks = landmarks
        self._query = query
        self._lock = threading.Lock()
        self._threads: dict[str, int] = {}
        # By conversation and id. Some servers use an id again in each answer, or for all its calls.
        self._pending: dict[tuple[int, str], deque[PendingCall]] = {}
        self._is_over = False

    def take(self, exchange: dict[str, Any], usage: Usage, started: str) -> None:
        """Write the steps that are complete now, by an exchange of `model.protocols.exchange`."""
        with self._lock:
            if self._is_over:
                return
            is_new = exchange["thread"] not in self._threads
            number = self._threads.setdefault(exchange["thread"], len(self._threads) + 1)
            for id, result in exchange["results"].items():
                # A program that rewrites its conversation's beginning goes on with its calls in a new one.
                others = [key for key in self._pending if key[1] == id] if is_new else []
                self._show(others[0] if len(others) == 1 else (number, id), result)
            self._add(exchange, number, usage, started)

    def _show(self, key: tuple[int, str], result: str) -> None:
        calls = self._pending.get(key)
        if calls:
            call = calls.popleft()
            self._write(TOOL_CALL, call, result, f"{call.source}\n{self._query}")
            if not calls:
                del self._pending[key]

    def _add(self, exchange: dict[str, Any], number: int, usage: Usage, started: str) -> None:
        tokens = {"prompt_tokens": usage.prompt_tokens, "completion_tokens": usage.completion_tokens}
        mark = f"[conversation {number}] " if number > 1 else ""
        said = exchange["text"] if exchange["tool_calls"] else ""
        thought = mark + "\n".join(filter(None, (exchange["thought"], said)))
        if not exchange["tool_calls"]:
            self._write(MESSAGE, PendingCall(exchange["text"], "", thought, started, tokens), "")
        for id in dict.fromkeys(call["id"] for call in exchange["tool_calls"]):
            self._give_up((number, id))
        for call in exchange["tool_calls"]:
            content = json.dumps({"name": call["name"], "arguments": call["arguments"]}, ensure_ascii=False)
            pending = PendingCall(content, source_of(call["arguments"]), thought, started, tokens)
            # Programs print their calls, too.
            self._landmarks.add_source(pending.source)
            self._pending.setdefault((number, call["id"]), deque()).append(pending)
            # The other calls of the same answer came with it.
            thought, tokens = mark, {"prompt_tokens": 0, "completion_tokens": 0}

    def _give_up(self, key: tuple[int, str]) -> None:
        """Write the calls whose result can no longer be told."""
        for call in self._pending.pop(key, ()):
            self._write(TOOL_CALL, call, UNSEEN)

    @contextmanager
    def of(self, command: str) -> Iterator[None]:
        """The program runs in this block. Afterwards the steps are written whose results were not shown."""
        # Programs print their task, so a landmark in its text is not an achievement.
        self._landmarks.begin_cell(f"{command}\n{self._query}", counts_echoes=False)
        try:
            yield
        finally:
            with self._lock:
                self._is_over = True
                for key in list(self._pending):
                    self._give_up(key)
                # The program's own step comes next.
                self._landmarks.place(self._log.next_number)

    def _write(self, kind: str, call: PendingCall, observation: str, source: str | None = None) -> None:
        # The trial has ended meanwhile: what it has done until then is on disk.
        with suppress(TrialEnded):
            self._log.add_apart(
                Action(type=kind, content=call.content),
                call.thought.strip(),
                call.started or now(),
                source,
                observation=observation,
                **call.tokens,
            )


def source_of_step(step: Step) -> str:
    """The texts in the arguments of a stored call; "" for any other step."""
    if step.action.type != TOOL_CALL:
        return ""
    with suppress(ValueError, RecursionError, KeyError, TypeError):
        return source_of(json.loads(step.action.content)["arguments"])
    return step.action.content


def source_of(arguments: str) -> str:
    """The texts in a call's arguments, as a tool gets them."""
    source = "\n".join(texts(loaded(arguments, arguments)))
    # What prints a quoted text leaves out the backslashes before its quotes.
    printed = ESCAPED_QUOTE.sub(r"\1", source)
    return f"{source}\n{printed}"
