"""The steps of one attempt at a task, numbered and written as they are taken."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, replace
from typing import Any

from pytest_super.errors import TrialEnded
from pytest_super.kernel.cell import CellResult
from pytest_super.metrics.matching.landmark_matcher import LandmarkMatcher
from pytest_super.store.trajectory import Action, Step, now
from pytest_super.trial.budget import Budget


def cell_fields(result: CellResult) -> dict[str, Any]:
    """The fields of a step that its cell's result determines."""
    observed = result.processes
    return {
        "outcome": result.outcome.value,
        "outputs": result.outputs,
        "omitted_characters": result.omitted,
        "processes": None if observed is None else [asdict(process) for process in observed],
        "dropped": result.dropped,
        "seconds": result.seconds,
    }


def check_texts(action: Action, fields: Mapping[str, Any]) -> None:
    """Raises TypeError for an action or an observation of an agent's own that is not text."""
    own: dict[str, Any] = {"type": action.type, "content": action.content, **fields}
    for name in ("type", "content", "observation"):
        if not isinstance(own[name], str):
            raise TypeError(f"the {name} of an action must be text, not {type(own[name]).__name__}")


def facts_of(step: Step) -> tuple[str, Action, str]:
    """What equal steps have in common."""
    return step.origin, step.action, step.observation


class StepLog:
    """Accepts steps from any thread until it is closed."""

    def __init__(
        self,
        write: Callable[[Step], None],
        budget: Budget,
        landmarks: LandmarkMatcher,
        before: Sequence[Step] = (),
    ) -> None:
        """`before` contains the steps of earlier attempts. Numbers continue after them."""
        self.steps: list[Step] = []
        self.shown: list[Step] = []
        """The same for the agent, which can change the list but not the log."""
        self._write = write
        self._budget = budget
        self._landmarks = landmarks
        self._before = before
        # Running sums of all steps, because a program can tell of thousands.
        self._prompt_tokens = sum(step.prompt_tokens for step in before)
        self._completion_tokens = sum(step.completion_tokens for step in before)
        self._credited = {index for step in before for index in step.landmarks}
        self._lock = threading.Lock()
        self._closed_by: str | None = None

    @property
    def all_steps(self) -> list[Step]:
        """The steps of earlier attempts and of this one."""
        return [*self._before, *self.steps]

    @property
    def next_number(self) -> int:
        return len(self._before) + len(self.steps) + 1

    def add(self, action: Action, thought: str, started: str, **fields: Any) -> Step:
        """Append and write a step of the agent. Raises TrialEnded once the log is closed.

        Tokens that are not among the `fields` are those charged since the last step.
        """
        with self.open():
            # A cell that timed out can hit more during later steps.
            hits = enumerate(self._landmarks.hits)
            new = [index for index, hit in hits if hit and index not in self._credited]
            return self._add(action, thought, started, landmarks=new, **fields)

    def add_apart(
        self, action: Action, thought: str, started: str, source: str | None, **fields: Any
    ) -> Step:
        """Like `add`, for a step beside the cell that runs, whose hits are not this step's.

        The observation is searched for landmarks; `source` is what asked for it, None: it is not searched.
        """
        with self.open():
            number = self.next_number
            if source is not None:
                self._landmarks.search_apart(source, fields["observation"], step=number)
            hits = [n for n, found in enumerate(self._landmarks.landmarks) if found.step == number]
            return self._add(action, thought, started, landmarks=hits, **fields)

    def _add(self, action: Action, thought: str, started: str, **fields: Any) -> Step:
        # For the calls that led to this step.
        fields = {
            "prompt_tokens": self._budget.prompt_tokens - self._prompt_tokens,
            "completion_tokens": self._budget.completion_tokens - self._completion_tokens,
            **fields,
        }
        step = Step(
            number=self.next_number,
            origin="agent",
            action=action,
            attempt=self._attempt,
            # Agents pass on what a model gave as its reasoning, such as None.
            thought=str(thought or ""),
            started=started,
            ended=now(),
            **fields,
        )
        before = self.steps[-1].repeats if self.steps and facts_of(self.steps[-1]) == facts_of(step) else 0
        step = replace(step, repeats=before + 1)
        self._append(step)
        return step

    def add_pre_executed(self, step: Step) -> None:
        self._append(replace(step, number=self.next_number, attempt=self._attempt))

    def _append(self, step: Step) -> None:
        self.steps.append(step)
        self.shown.append(step)
        self._prompt_tokens += step.prompt_tokens
        self._completion_tokens += step.completion_tokens
        self._credited.update(step.landmarks)
        self._write(step)

    @contextmanager
    def open(self) -> Iterator[None]:
        """Keep the log open until the block ends. Raises TrialEnded if the log is closed."""
        with self._lock:
            if self._closed_by is not None:
                raise TrialEnded(self._closed_by)
            yield

    def close(self, stop_reason: str) -> None:
        """Refuse all further steps, also of actions that other threads have not finished."""
        with self._lock:
            self._closed_by = stop_reason

    @property
    def _attempt(self) -> int:
        return self._before[-1].attempt + 1 if self._before else 1
