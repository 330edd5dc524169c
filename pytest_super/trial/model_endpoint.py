"""The model door: serves the trial's model to a program in each of PROTOCOLS, and charges the trial."""

from __future__ import annotations

import re
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, cast

from pytest_super.kernel.http_requests import Gone, HttpRequest, Reply
from pytest_super.model.client import GatewayModel, error_of
from pytest_super.model.completion import RETRIED, BudgetSpentError, Model, ModelError, Usage
from pytest_super.model.protocols.protocol import headers_for
from pytest_super.model.protocols.registry import OFFERED, ROUTES, models_at, route_of
from pytest_super.model.protocols.route import Route
from pytest_super.trial.budget import Budget
from pytest_super.trial.model_replies import HeldStream, RefusedError, refusal, reply

OnCall = Callable[[dict[str, Any], Usage, str], None]
"""Gets an exchange (see model.protocols.exchange), its usage, and when it began."""

# Refused requests and removed tools shown in the trajectory: how many, and the characters of each.
MOST_NAMED, LONGEST_NAMED = 5, 100
MOST_BROKEN = 5
HEADER = re.compile(r"[\w.,\- ]*", re.ASCII)
# Errors of the request, not of the model, as codes of OpenAI's API. Agents use the first one to notice that
# their prompt is too long.
CODES = {
    "context": "context_length_exceeded",
    "filtered": "content_policy_violation",
    "refused": "invalid_request",
    "invalid_request": "invalid_request",
}


class ModelEndpoint:
    """Answers the HTTP requests of one program. `answer` is called in several threads at once.

    A failed model (`failure`) or a reached limit (`spent`) ends the trial, however the program handles the
    answer. A request that is wrong, too long or refused by a content policy does not: the program handles it.
    """

    def __init__(self, model: Model, budget: Budget, on_call: OnCall = lambda *_: None) -> None:
        self._on_call = on_call
        self.failure: ModelError | None = None
        self.spent: str | None = None
        self.why_spent = ""
        """See BudgetSpentError."""
        self._model = model
        self._budget = budget
        self._lock = threading.Lock()
        self._running = 0
        self._since = 0.0
        self._waited = 0.0
        self._is_closed = False
        self._broken = 0
        """Streams in a row that failed after a part of them was relayed."""
        # Ordered sets.
        self._refused: dict[str, None] = {}
        self._removed: dict[str, None] = {}

    def answer(self, request: HttpRequest) -> Reply | None:
        """The reply to one request; None if it was a stream. Raises Gone when its client has left."""
        method, path = request.method, request.path.partition("?")[0]
        if method == "GET" and (models := models_at(path, getattr(self._model, "name", "model"))):
            return reply(models)
        if method == "POST" and (route := route_of(request.path)):
            return self._ask(request, route)
        asked = f"{method} {path}"[:LONGEST_NAMED]
        self._name(self._refused, asked)
        return refusal(404, "not_found", f"{asked} is not offered here, only {OFFERED}")

    def _name(self, names: dict[str, None], name: str) -> None:
        with self._lock:
            if len(names) < MOST_NAMED:
                names[name[:LONGEST_NAMED]] = None

    @property
    def note(self) -> str:
        """What a user can see the program's troubles from: refused requests and removed tools; or ""."""
        asked = f"[The program asked for {self.refused}]" if self.refused else ""
        with self._lock:
            removed = ", ".join(self._removed)
        hosted = f"[Removed from the program's requests: {removed}, which the provider would run.]"
        return "\n".join(filter(None, (asked, hosted if removed else "")))

    @property
    def refused(self) -> str:
        """The first requests that were refused, and what is offered instead; or ""."""
        with self._lock:
            refused = ", ".join(self._refused)
        return f"{refused}: only {OFFERED} are offered here." if refused else ""

    @property
    def waiting_seconds(self) -> float:
        """Seconds during which at least one request waited for the model, until now or until `close`."""
        with self._lock:
            return self._waited + (self._budget.clock() - self._since if self._running else 0.0)

    def close(self) -> None:
        """Stop the clock and answer no more requests."""
        with self._lock:
            self._stop_clock()
            self._running, self._is_closed = 0, True

    def _stop_clock(self) -> None:
        if self._running:
            self._waited += self._budget.clock() - self._since

    @contextmanager
    def _clocked(self) -> Iterator[None]:
        with self._lock:
            if self._is_closed:
                raise Gone
            if not self._running:
                self._since = self._budget.clock()
            self._running += 1
        try:
            yield
        finally:
            with self._lock:
                # `close` has stopped the clock.
                if not self._is_closed:
                    if self._running == 1:
                        self._stop_clock()
                    self._running -= 1

    def _ask(self, request: HttpRequest, route: Route) -> Reply | None:
        stream, protocol = HeldStream(request), ROUTES[route]
        for name, value in headers_for(protocol, request.headers).items():
            if not HEADER.fullmatch(value):
                return stream.refuse(protocol, 400, "invalid_request", f"{name} must be a list of names")
        try:
            if limit := self.spent or self._budget.spent_besides_compute():
                raise BudgetSpentError(limit)
            with self._clocked():
                return self._call(request, route, stream)
        except Gone:
            raise
        except BudgetSpentError as spent:
            self.spent, self.why_spent = self.spent or spent.limit, self.why_spent or spent.why
            return stream.refuse(protocol, 403, f"budget_{spent.limit}", str(spent))
        except RefusedError as error:
            return stream.refuse(protocol, 400, error.code, str(error))
        except Exception as error:
            failed = error if isinstance(error, ModelError) else ModelError(f"the model failed: {error!r}")
            self.failure = self.failure or failed
            # Clients do not retry a 403, as they do a 5xx.
            return stream.refuse(protocol, 403, "model_error", str(error))

    def _call(self, request: HttpRequest, route: Route, stream: HeldStream) -> Reply | None:
        if not hasattr(self._model, "forward"):
            raise ModelError("a program can ask the model of --super-model alone, not one of a fixture")
        model, began = cast("GatewayModel", self._model), self._budget.clock()
        # A client that leaves cancels its call.
        answer = model.forward(route, request.body, request.when_gone, stream.send, request.headers)
        if "error" in answer:
            raise self._error_of(answer["error"], route, stream)
        if not route.is_count:
            self._broken = 0
            for tool in answer["removed"]:
                self._name(self._removed, tool)
            self._charge(answer, began)
        return None if stream.end() else reply(answer["body"])

    def _error_of(self, error: dict[str, str], route: Route, stream: HeldStream) -> Exception:
        code = error["code"]
        self._broken += stream.has_begun and code in RETRIED
        # Nothing of it can be retried here, but the program can ask again.
        is_forgiven = stream.has_begun and code in RETRIED and self._broken <= MOST_BROKEN
        if code in CODES or is_forgiven or route.is_count:
            return RefusedError(CODES.get(code, code), error["message"])
        return error_of(error)

    def _charge(self, answer: dict[str, Any], began: float) -> None:
        """Charge a request asked at the time `began`. Raises BudgetSpentError if that spent the budget."""
        usage = Usage.from_data(answer)
        with self._lock:
            # After the end, the trial takes the totals from the model's ledger.
            if self._is_closed:
                raise Gone
            self._budget.charge_call(usage, answer["seconds"], began)
        self._on_call(answer["exchange"], usage, answer["started"])
        if limit := self._budget.spent_besides_compute():
            raise BudgetSpentError(limit)
