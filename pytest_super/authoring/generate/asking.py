"""Asks the model each question once per output folder, and once more when the answer cannot be used."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, TypeVar

from pytest_super.authoring.generate.prompts import PROBLEM, Prompts
from pytest_super.authoring.generate.refusal import RepositoryRefused
from pytest_super.digests import digest
from pytest_super.model.completion import (
    BudgetSpentError,
    Completion,
    FilteredError,
    Message,
    Model,
    ModelError,
)

if TYPE_CHECKING:
    from pytest_super.authoring.generate.record import GenerationRecord

T = TypeVar("T")

ROUNDS = 2
# An answer has some hundred tokens; models that think in their answer need more.
DECODING: dict[str, Any] = {"temperature": 0.0, "max_tokens": 4000}
# Characters of a refused answer that are shown to the model again.
LONGEST_SHOWN = 4000


class Stopped(Exception):
    """The run is ending: no further question is asked."""


class Asker:
    """Asks the questions about all repositories, from several threads."""

    def __init__(
        self, record: GenerationRecord, prompts: Prompts, identity: Any, open_model: Callable[[str], Model]
    ) -> None:
        """`identity` identifies the model and its parameters; `open_model` takes the id of a task."""
        self._record = record
        self._prompts = prompts
        self._identity = identity
        self._open_model = open_model
        self.stop = threading.Event()

    def ask(self, task: str, prompt: str, material: str, judge: Callable[[str], T]) -> T:
        """Return `judge(answer)`. If that raises RepositoryRefused, the model is asked again.

        Raises RepositoryRefused for the second answer or when the provider refuses; ModelError; Stopped.
        """
        messages = [{"role": "system", "content": prompt}, {"role": "user", "content": material}]
        for left in reversed(range(ROUNDS)):
            text, finish_reason = self._answer(task, messages)
            try:
                if finish_reason == "length":
                    raise RepositoryRefused("bad_answer", "it was cut off, being too long")
                return judge(text)
            except RepositoryRefused as refused:
                if not left:
                    raise
                messages = [*messages, *self._again(text, str(refused))]
        raise AssertionError

    def _again(self, text: str, problem: str) -> list[dict[str, str]]:
        # Some providers reject an empty message.
        said = {"role": "assistant", "content": text[:LONGEST_SHOWN].strip() or "(nothing)"}
        return [said, {"role": "user", "content": self._prompts.repair.replace(PROBLEM, problem)}]

    def _answer(self, task: str, messages: list[dict[str, str]]) -> tuple[str, str]:
        """The text, and why it ended."""
        key = digest([self._identity, messages])
        if known := self._record.answers.get(key):
            return known
        # After the look-up, because an answer that is known costs nothing.
        if self.stop.is_set():
            raise Stopped
        completion = self._complete(task, messages)
        # The answer can contain lone surrogates, which cannot be written to a file.
        text = completion.text.encode("utf-8", "replace").decode()
        self._record.add_answer(key, task, text, completion.finish_reason)
        return text, completion.finish_reason

    def _complete(self, task: str, messages: Sequence[Message]) -> Completion:
        try:
            return self._open_model(task).complete(messages, **DECODING)
        except FilteredError as error:
            raise RepositoryRefused("model_refused", f"content policy: {error}") from None
        except BudgetSpentError as error:
            raise RepositoryRefused("model_refused", f"no room in the model's {error.limit}") from None
        except ValueError as error:
            raise ModelError(f"the request cannot be sent: {error}") from None
