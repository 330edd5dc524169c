"""The way from a program beside the trial to the trial: its actions as HTTP requests."""

from __future__ import annotations

import json
import queue
import threading
from concurrent.futures import Future
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

from pytest_super.errors import TrialEnded
from pytest_super.store.trajectory import step_to_data
from pytest_super.trial.model_endpoint import ModelEndpoint, refusal, reply

if TYPE_CHECKING:
    from collections.abc import Callable

    from pytest_super.kernel.http_requests import HttpRequest, Reply
    from pytest_super.store.trajectory import Step
    from pytest_super.tasks.public_task import PublicTask
    from pytest_super.trial.trial import Trial

    Act = Callable[[dict[str, Any]], Step]

MODEL, TRIAL = "/v1", "/trial"
TOLD = ("number", "origin", "attempt", "action", "thought", "observation", "outcome")
# Of each action the fields that must be there; `thought` may be. None: any JSON value.
FIELDS: dict[str, dict[str, type | None]] = {
    "execute": {"code": str},
    "continue_wait": {},
    "interrupt": {},
    "edit": {"path": str, "before": str, "after": str},
    "submit": {"answer": None},
}


@dataclass(frozen=True, slots=True)
class Asked:
    """An action that waits for its turn."""

    call: HttpRequest
    act: Callable[[], Step]
    reply: Future[Reply]


class TrialEndpoint:
    """Answers the HTTP requests of one program; the trial's model behind an endpoint of its own.

    `answer` is called in threads, several at once. Actions are taken one by one and in the order in which
    they came, by whoever calls `take`: the trial and its kernel are one thread's.
    """

    def __init__(self, trial: Trial) -> None:
        self._trial = trial
        self._model = None if trial.model is None else ModelEndpoint(trial.model, trial.budget)
        self._waiting: queue.SimpleQueue[Asked | None] = queue.SimpleQueue()
        self._lock = threading.Lock()
        self._is_closed = False

    def answer(self, call: HttpRequest) -> Reply:
        """The reply to one request. Raises Gone when its client has left."""
        if self._trial.stop_reason is not None or self._is_closed:
            return self._ended()
        path = call.path.partition("?")[0].rstrip("/")
        if path.startswith(f"{MODEL}/"):
            return self._ask_model(call)
        if path in (TRIAL, f"{TRIAL}/history"):
            return self._tell(call, path)
        name = path.removeprefix(f"{TRIAL}/")
        if path == name or name not in FIELDS:
            return not_found()
        return self._act(call, name)

    def take(self, timeout: float) -> None:
        """Take the next action, if one comes in `timeout` seconds; return at once when woken."""
        try:
            asked = self._waiting.get(timeout=timeout)
        except queue.Empty:
            return
        if asked is not None:
            self._take(asked)

    def wake(self) -> None:
        """Let `take` return, from any thread."""
        self._waiting.put(None)

    def is_over(self) -> bool:
        """Whether the trial is over, for what requests to the model used too.

        Raises ModelError when the model has failed before that.
        """
        trial, model = self._trial, self._model
        if trial.stop_reason is not None:
            return True
        if model is not None and model.failure is not None:
            raise model.failure
        if reason := (model and model.spent) or trial.budget.spent():
            trial.end(reason)
            return True
        return False

    @property
    def note(self) -> str:
        """See ModelEndpoint.note."""
        return self._model.note if self._model is not None else ""

    def close(self) -> None:
        """No action is taken any more, and the model is not asked; what waits is told so."""
        if self._model is not None:
            self._model.close()
        with self._lock:
            self._is_closed = True
        while not self._waiting.empty():
            asked = self._waiting.get()
            if asked is not None:
                asked.reply.set_result(self._ended())

    def _ask_model(self, call: HttpRequest) -> Reply:
        if self._model is None:
            return refusal(404, "no_model", "this run has no model: name one by --super-model")
        return self._model.answer(call)

    def _tell(self, call: HttpRequest, path: str) -> Reply:
        if call.method != "GET":
            return wrong_method("GET")
        if path == TRIAL:
            return reply(task_data(self._trial.task))
        return reply({"steps": [told_of(step) for step in list(self._trial.history)]})

    def _act(self, call: HttpRequest, name: str) -> Reply:
        if call.method != "POST":
            return wrong_method("POST")
        try:
            fields = read_fields(call.body, FIELDS[name])
        except ValueError as error:
            return refusal(400, "invalid_request", str(error))
        asked = Asked(call, lambda: getattr(self._trial, name)(**fields), Future())
        with self._lock:
            if self._is_closed:
                return self._ended()
            self._waiting.put(asked)
        return asked.reply.result()

    def _take(self, asked: Asked) -> None:
        answer = None
        try:
            # A client that has left would not know what was done. What the model failed with, or used, comes
            # before whatever the program does next.
            if not asked.call.is_gone and not self.is_over():
                answer = self._taken(asked.act)
        finally:
            asked.reply.set_result(answer or self._ended())

    def _taken(self, act: Callable[[], Step]) -> Reply:
        try:
            step = act()
        except TrialEnded:
            return self._ended()
        except ValueError as error:
            return refusal(400, "invalid_request", str(error))
        told = {"number": step.number, "observation": step.observation, "outcome": step.outcome}
        return reply({**told, "stop_reason": self._trial.stop_reason})

    def _ended(self) -> Reply:
        reason = self._trial.stop_reason
        error = {"message": f"the trial is over: {reason}", "type": "pytest_super", "code": "trial_ended"}
        return reply({"error": error, "stop_reason": reason}, status=410)


def read_fields(body: bytes, wanted: dict[str, type | None]) -> dict[str, Any]:
    """The fields of a request. Raises ValueError, whose text says what is wrong with them."""
    try:
        fields = json.loads(body or b"{}")
    except (ValueError, RecursionError) as error:
        raise ValueError(f"the body is no JSON: {error}") from None
    if not isinstance(fields, dict):
        raise ValueError("the body must be a JSON object")
    known = {**wanted, "thought": str}
    for name in fields:
        if name not in known:
            raise ValueError(f"unknown field `{name}`: known are {', '.join(known)}")
    for name in wanted:
        if name not in fields:
            raise ValueError(f"the field `{name}` is missing")
    for name, value in fields.items():
        if known[name] is str and not isinstance(value, str):
            raise ValueError(f"the field `{name}` must be a text")
    return fields


def task_data(task: PublicTask) -> dict[str, Any]:
    return {**asdict(task), "limits": task.limits.model_dump()}


def told_of(step: Step) -> dict[str, Any]:
    data = step_to_data(step)
    return {name: data[name] for name in TOLD}


def not_found() -> Reply:
    paths = ", ".join([f"{TRIAL}/{name}" for name in FIELDS])
    known = f"GET {TRIAL} and {TRIAL}/history, POST {paths}, and the model below {MODEL}"
    return refusal(404, "not_found", f"there is nothing here, but {known}")


def wrong_method(right: str) -> Reply:
    return refusal(405, "wrong_method", f"ask by {right}")
