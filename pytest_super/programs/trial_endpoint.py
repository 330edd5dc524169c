"""Answers the HTTP requests by which a program on the host acts in a trial."""

from __future__ import annotations

import json
import queue
import threading
from collections.abc import Callable
from concurrent.futures import Future
from dataclasses import asdict, dataclass
from typing import Any

from pytest_super.errors import TrialEnded
from pytest_super.kernel.http_requests import HttpRequest, Reply
from pytest_super.model.protocols.registry import FOLDERS
from pytest_super.programs.mcp_server import TEXT, TOOLS
from pytest_super.store.trajectory import Step, step_to_data
from pytest_super.trial.model_endpoint import ModelEndpoint
from pytest_super.trial.model_replies import refusal, reply
from pytest_super.trial.trial import Trial

TRIAL = "/trial"
# The fields of a step that a program can see: not landmarks, which would show the goal.
STEP_FIELDS = ("number", "origin", "attempt", "action", "thought", "observation", "outcome")
# The required fields of each action; `thought` is optional.
FIELDS = {name: tool.fields for name, tool in TOOLS.items() if tool.is_action}


@dataclass(frozen=True, slots=True)
class PendingAction:
    """A requested action that has not been run yet."""

    request: HttpRequest
    act: Callable[[], Step]
    reply: Future[Reply]


class TrialEndpoint:
    """Answers one program's HTTP requests to the trial and to its model.

    `answer` is called in several threads at once. The thread that calls `take` runs the actions one by one in
    order of arrival, because the trial and its kernel belong to one thread.
    """

    def __init__(self, trial: Trial) -> None:
        self._trial = trial
        self._model = None if trial.model is None else ModelEndpoint(trial.model, trial.budget)
        self._lacks_model = False
        """Whether the program has asked for a model that the run does not have."""
        self._pending: queue.SimpleQueue[PendingAction | None] = queue.SimpleQueue()
        self._lock = threading.Lock()
        self._is_closed = False

    def answer(self, request: HttpRequest) -> Reply | None:
        """The reply to one request; None if it was a stream. Raises Gone when its client has left."""
        if self._trial.stop_reason is not None or self._is_closed:
            return self._ended()
        path = request.path.partition("?")[0].rstrip("/")
        if path.startswith(FOLDERS):
            if self._model is not None:
                return self._model.answer(request)
            self._lacks_model = True
            return refusal(404, "no_model", "this run has no model: set one with --super-model")
        if path in (TRIAL, f"{TRIAL}/history"):
            return self._report(request, path)
        name = path.removeprefix(f"{TRIAL}/")
        if path == name or name not in FIELDS:
            return not_found()
        return self._act(request, name)

    def take(self, timeout: float) -> None:
        """Run the next action if one arrives within `timeout` seconds; return at once after `wake`."""
        try:
            pending = self._pending.get(timeout=timeout)
        except queue.Empty:
            return
        if pending is not None:
            self._take(pending)

    def wake(self) -> None:
        """Make `take` return. Can be called from any thread."""
        self._pending.put(None)

    def is_over(self) -> bool:
        """Whether the trial is over: a spent budget ends it. Raises ModelError if the model failed first."""
        trial, model = self._trial, self._model
        if trial.stop_reason is not None:
            return True
        if model is not None and model.failure is not None:
            raise model.failure
        if reason := (model and model.spent) or trial.budget.spent_besides_compute():
            trial.end(reason, model.why_spent if model else "")
            return True
        return False

    @property
    def note(self) -> str:
        """See ModelEndpoint.note."""
        return self._model.note if self._model is not None else ""

    @property
    def refused(self) -> str:
        """See ModelEndpoint.refused."""
        if self._model is not None:
            return self._model.refused
        return "a model, but this run has none: set one with --super-model." if self._lacks_model else ""

    def close(self) -> None:
        """Run no more actions and model requests. Pending ones get the answer that the trial is over."""
        if self._model is not None:
            self._model.close()
        # `_act` adds nothing after this, so the loop below answers every pending request.
        with self._lock:
            self._is_closed = True
        while not self._pending.empty():
            pending = self._pending.get()
            if pending is not None:
                pending.reply.set_result(self._ended())

    def _report(self, request: HttpRequest, path: str) -> Reply:
        if request.method != "GET":
            return wrong_method("GET")
        if path == TRIAL:
            task = self._trial.task
            return reply({**asdict(task), "limits": task.limits.model_dump()})
        # A copy, because another thread appends steps.
        steps = map(step_to_data, list(self._trial.history))
        return reply({"steps": [{name: step[name] for name in STEP_FIELDS} for step in steps]})

    def _act(self, request: HttpRequest, name: str) -> Reply:
        if request.method != "POST":
            return wrong_method("POST")
        try:
            fields = read_fields(request.body, FIELDS[name])
        except ValueError as error:
            return refusal(400, "invalid_request", str(error))
        pending = PendingAction(request, lambda: getattr(self._trial, name)(**fields), Future())
        with self._lock:
            if self._is_closed:
                return self._ended()
            self._pending.put(pending)
        return pending.reply.result()

    def _take(self, pending: PendingAction) -> None:
        answer = None
        try:
            # The action of a client that has left is not run. A failed model or a spent budget ends the trial
            # before the program's next action.
            if not pending.request.is_gone and not self.is_over():
                answer = self._run(pending.act)
        finally:
            pending.reply.set_result(answer or self._ended())

    def _run(self, act: Callable[[], Step]) -> Reply:
        try:
            step = act()
        except TrialEnded:
            return self._ended()
        except ValueError as error:
            return refusal(400, "invalid_request", str(error))
        result = {"number": step.number, "observation": step.observation, "outcome": step.outcome}
        return reply({**result, "stop_reason": self._trial.stop_reason})

    def _ended(self) -> Reply:
        reason = self._trial.stop_reason
        error = {"message": f"the trial is over: {reason}", "type": "pytest_super", "code": "trial_ended"}
        return reply({"error": error, "stop_reason": reason}, status=410)


def read_fields(body: bytes, wanted: dict[str, dict[str, Any]]) -> dict[str, Any]:
    """The fields of a request. Raises ValueError with a message for the program."""
    try:
        fields = json.loads(body or b"{}")
    except (ValueError, RecursionError) as error:
        raise ValueError(f"the body is not JSON: {error}") from None
    if not isinstance(fields, dict):
        raise ValueError("the body must be a JSON object")
    known = {**wanted, "thought": TEXT}
    for name in fields:
        if name not in known:
            raise ValueError(f"unknown field `{name}`: use {', '.join(known)}")
    for name in wanted:
        if name not in fields:
            raise ValueError(f"the field `{name}` is missing")
    for name, value in fields.items():
        if known[name].get("type") == "string" and not isinstance(value, str):
            raise ValueError(f"the field `{name}` must be a string")
    return fields


def not_found() -> Reply:
    paths = ", ".join([f"{TRIAL}/{name}" for name in FIELDS])
    known = f"GET {TRIAL} and {TRIAL}/history, POST {paths}, and the model below {' and '.join(FOLDERS)}"
    return refusal(404, "not_found", f"there is nothing here; use {known}")


def wrong_method(right: str) -> Reply:
    return refusal(405, "wrong_method", f"use {right}")
