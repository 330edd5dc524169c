"""A cell from its request to its end, as the messages tell."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pytest_super.kernel.cell import CellResult, Outcome
from pytest_super.kernel.messages import as_text
from pytest_super.kernel.output import CellOutput, readable

if TYPE_CHECKING:
    from collections.abc import Callable


class RunningCell:
    """The state of one cell. Changed by the reader thread under the link's lock.

    It is over when its reply and its idle message have come, in either order. Code, or an interrupt at the
    wrong moment, can swallow one of them; then it is over when the kernel has begun to handle a later
    request, our probe, and has answered it. It handles one at a time: by then all output of the cell has
    come, and its reply, each on its own channel. Between the two channels there is no order.

    Its time runs until it is over: code can send an idle message, or a reply, long before its end.
    """

    def __init__(
        self,
        code: str,
        listener: Callable[[str], None] | None,
        *,
        output: CellOutput,
        started: float,
        expression: str | None = None,
    ) -> None:
        """`expression`: what is evaluated in the cell's place, unseen by the history."""
        self.code = code
        self.expression = expression
        self.listener = listener
        self.output = output
        self.id = self.probe_id = ""
        self.is_interrupted = False
        self.has_begun = False
        self._started = started
        self._ended: float | None = None
        self._reply: dict[str, Any] | None = None
        self._is_idle = self._probe_began = self._probe_answered = False
        self._error: dict[str, Any] | None = None

    def request(self) -> dict[str, Any]:
        """What an execute_request says of it."""
        is_seen = self.expression is None
        return {
            # A model may write half of a surrogate pair, which no encoding takes.
            "code": self.code.encode("utf-8", "replace").decode(),
            "silent": not is_seen,
            "store_history": is_seen,
            "user_expressions": {} if is_seen else {"value": self.expression},
            "allow_stdin": False,
            # Else the kernel would refuse what follows an error for a while.
            "stop_on_error": False,
        }

    @property
    def value(self) -> str | None:
        """That of its expression, as the kernel shows it; None where it has none."""
        found = (self._reply or {}).get("user_expressions")
        value = found.get("value") if isinstance(found, dict) else None
        data = value.get("data") if isinstance(value, dict) else None
        text = data.get("text/plain") if isinstance(data, dict) else None
        return text if isinstance(text, str) else None

    @property
    def is_over(self) -> bool:
        is_superseded = self._probe_began and self._probe_answered
        return is_superseded or (self._is_idle and self._reply is not None)

    @property
    def is_aborted(self) -> bool:
        """Whether the kernel refused to run it, because an earlier cell had failed."""
        return self._reply is not None and self._reply.get("status") == "aborted"

    def seconds(self, now: float) -> float:
        return (now if self._ended is None else self._ended) - self._started

    def ask_again(self, new_id: str) -> None:
        """It is requested anew, under `new_id`, after the kernel refused it."""
        self.id, self.probe_id = new_id, ""
        self._ended = self._reply = None
        self._is_idle = self._probe_began = self._probe_answered = False

    def began(self) -> None:
        """The kernel has announced its input: from now on an interrupt reaches it."""
        self.has_begun = True

    def replied(self, content: dict[str, Any], now: float) -> None:
        self._reply = content
        self._stop_when_over(now)

    def became_idle(self, now: float) -> None:
        self._is_idle = True
        self._stop_when_over(now)

    def probe_began(self, now: float) -> None:
        """The handling of the probe was announced among the outputs."""
        self._probe_began = True
        self._stop_when_over(now)

    def probe_answered(self, now: float) -> None:
        """The probe's own reply came."""
        self._probe_answered = True
        self._stop_when_over(now)

    def _stop_when_over(self, now: float) -> None:
        if self.is_over:
            self.stop(now)

    def stop(self, now: float) -> None:
        """It does not run any more, whatever it said."""
        if self._ended is None:
            self._ended = now

    def put_out(self, kind: str, content: dict[str, Any]) -> str:
        """Take in one IOPub message; gives its text."""
        if kind == "error":
            self._error = content
        return self.output.add(kind, content)

    def outcome(self, *, while_interrupting: bool) -> tuple[Outcome, str]:
        """How it ended and why, once it is over."""
        reply = self._reply or {}
        error = self._error or (reply if reply.get("status") == "error" else None)
        if error is None:
            return self._outcome_without_error(while_interrupting)
        name = as_text(error.get("ename"))
        is_ours = self.is_interrupted and (name == "KeyboardInterrupt" or while_interrupting)
        detail = f"{name}: {as_text(error.get('evalue'))}".removesuffix(": ")[:1000]
        return (Outcome.INTERRUPTED if is_ours else Outcome.ERROR), detail

    def _outcome_without_error(self, while_interrupting: bool) -> tuple[Outcome, str]:
        if while_interrupting or (self.is_interrupted and self._reply is None):
            return Outcome.INTERRUPTED, ""
        if self._reply is None:
            return Outcome.ERROR, "the kernel ended the cell without a reply"
        return Outcome.OK, ""

    def result(self, outcome: Outcome, detail: str, now: float) -> CellResult:
        """What came since the last result, which is taken by this."""
        output, self.output = self.output, CellOutput()
        outputs = output.outputs()
        return CellResult(
            outcome=outcome,
            text=readable(outputs),
            outputs=outputs,
            omitted=output.omitted,
            detail=detail,
            seconds=self.seconds(now),
        )
