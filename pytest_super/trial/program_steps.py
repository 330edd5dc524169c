"""A program's calls of its model as steps: what the model thought and called, and what its tools printed.

The model door sees nothing else of what happens inside the program. A result of a tool is shown by the next
request, so a step is written then, or when the program has ended.
"""

from __future__ import annotations

import json
import threading
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from pytest_super.errors import TrialEnded
from pytest_super.store.trajectory import MESSAGE, TOOL_CALL, Action, now

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pytest_super.metrics.matching.landmark_matcher import LandmarkMatcher
    from pytest_super.model.completion import Usage
    from pytest_super.trial.step_log import StepLog

UNSEEN = "[No later request has shown what came of it.]"


@dataclass(slots=True)
class PendingCall:
    """A call of a tool whose result no request has shown yet."""

    content: str
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
        self._pending: dict[str, PendingCall] = {}

    def take(self, exchange: dict[str, Any], usage: Usage, started: str) -> None:
        """Write the steps that are complete now; see model.protocols.exchange for the exchange."""
        with self._lock:
            number = self._threads.setdefault(exchange["thread"], len(self._threads) + 1)
            for id, result in exchange["results"].items():
                if pending := self._pending.pop(id, None):
                    self._write(TOOL_CALL, pending, result)
            self._add(exchange, f"[sub-agent {number}] " if number > 1 else "", usage, started)

    def _add(self, exchange: dict[str, Any], mark: str, usage: Usage, started: str) -> None:
        tokens = {"prompt_tokens": usage.prompt_tokens, "completion_tokens": usage.completion_tokens}
        said = exchange["text"] if exchange["tool_calls"] else ""
        thought = mark + "\n".join(filter(None, (exchange["thought"], said)))
        if not exchange["tool_calls"]:
            self._write(MESSAGE, PendingCall(exchange["text"], thought, started, tokens), "")
        for call in exchange["tool_calls"]:
            content = json.dumps({"name": call["name"], "arguments": call["arguments"]}, ensure_ascii=False)
            self._pending[call["id"]] = PendingCall(content, thought, started, tokens)
            # The other calls of the same answer came with it.
            thought, tokens = mark, {"prompt_tokens": 0, "completion_tokens": 0}

    @contextmanager
    def of(self, command: str) -> Iterator[None]:
        """The program runs in this block. Afterwards the steps are written whose results were not shown."""
        # Programs print their task, so a landmark in its text is not an achievement.
        self._landmarks.begin_cell(f"{command}\n{self._query}")
        try:
            yield
        finally:
            with self._lock:
                for pending in self._pending.values():
                    self._write(TOOL_CALL, pending, UNSEEN)
                self._pending.clear()
            # The program's own step comes next.
            self._landmarks.place(self._log.next_number)

    def _write(self, kind: str, call: PendingCall, observation: str) -> None:
        source = f"{call.content}\n{self._query}"
        self._landmarks.search_apart(source, observation, step=self._log.next_number)
        # The trial has ended meanwhile: what it has done until then is on disk.
        with suppress(TrialEnded):
            self._log.add(
                Action(type=kind, content=call.content),
                call.thought.strip(),
                call.started or now(),
                observation=observation,
                **call.tokens,
            )
