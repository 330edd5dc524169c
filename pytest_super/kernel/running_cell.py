"""One cell from its request to its end, as the kernel's messages report it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pytest_super.kernel.cell import CellResult, Outcome
from pytest_super.kernel.inside import frames
from pytest_super.kernel.messages import as_text
from pytest_super.kernel.output import CellOutput, readable

if TYPE_CHECKING:
    from collections.abc import Callable

    from pytest_super.kernel.link import Message


class RunningCell:
    """The state of one cell. The reader thread changes it under the lock of its LiveKernel.

    The cell is over when its reply and its idle message have arrived, in either order. Code in the cell, or
    an interrupt at the wrong moment, can swallow one of the two. Then the cell is over when the kernel has
    begun to handle a later request, our probe, and has answered it: the kernel handles one request at a time,
    so by then all output of the cell has arrived, and its reply, each on its own channel. The order of
    messages on different channels is undefined.

    The clock of the cell runs until it is over: code can send an idle message or a reply long before its end.
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
        """`expression` is evaluated instead of `code`, and the kernel's history does not record it."""
        self.listener = listener
        self._code = code
        self._expression = expression
        self._output = output
        self._id = self._probe_id = ""
        self._is_interrupted = self._has_begun = False
        self._started = started
        self._ended: float | None = None
        self._reply: dict[str, Any] | None = None
        self._is_idle = self._probe_began = self._probe_answered = False
        self._error: dict[str, Any] | None = None

    # Requests

    def request(self) -> dict[str, Any]:
        """The content of the execute_request."""
        is_seen = self._expression is None
        return {
            # A model can write half of a surrogate pair, which cannot be encoded.
            "code": self._code.encode("utf-8", "replace").decode(),
            "silent": not is_seen,
            "store_history": is_seen,
            "user_expressions": {} if is_seen else {"value": self._expression},
            "allow_stdin": False,
            # With True the kernel refuses the requests that follow an error for a while.
            "stop_on_error": False,
        }

    def requested(self, request_id: str) -> None:
        """The request was sent. After a refusal it is sent again, and the cell starts over."""
        self._id, self._probe_id = request_id, ""
        self._ended = self._reply = None
        self._is_idle = self._probe_began = self._probe_answered = False

    @property
    def is_probed(self) -> bool:
        """Whether a probe was sent after the request."""
        return bool(self._probe_id)

    def probed(self, request_id: str) -> None:
        self._probe_id = request_id

    def interrupted(self) -> None:
        self._is_interrupted = True

    # Messages of the kernel

    def owns(self, message: Message) -> bool:
        """Whether the request of this cell caused the message."""
        return message.parent == self._id

    def handle(self, message: Message, now: float) -> None:
        """Handle a message about the progress of the cell or the probe."""
        content = message.content
        if self.owns(message):
            if message.kind == "execute_input":
                self._has_begun = True
            # Code in the cell can publish a message of this kind on IOPUB.
            elif message.kind == "execute_reply" and message.channel == frames.SHELL:
                self._reply = content
            elif message.kind == "status" and content.get("execution_state") == "idle":
                self._is_idle = True
        elif self.is_probed and message.parent == self._probe_id:
            self._probe_began |= message.channel == frames.IOPUB
            self._probe_answered |= message.channel == frames.SHELL
        if self.is_over:
            self.stop(now)

    def add_output(self, message: Message) -> str:
        """Add the output in a message to the cell's; returns its text."""
        if message.kind == "error" and self.owns(message):
            self._error = message.content
        return self._output.add(message.kind, message.content)

    def stop(self, now: float) -> None:
        """The cell does not run any more, whatever it reported."""
        if self._ended is None:
            self._ended = now

    # State

    @property
    def has_begun(self) -> bool:
        """Whether the kernel has announced the cell: from then on an interrupt reaches it."""
        return self._has_begun

    @property
    def is_over(self) -> bool:
        is_superseded = self._probe_began and self._probe_answered
        return is_superseded or (self._is_idle and self._reply is not None)

    @property
    def is_refused(self) -> bool:
        """Whether the kernel refused to run the cell because an earlier one had failed."""
        return self._reply is not None and self._reply.get("status") == "aborted"

    def seconds(self, now: float) -> float:
        return (now if self._ended is None else self._ended) - self._started

    @property
    def value(self) -> str | None:
        """The value of the expression as the kernel displays it; None if there is no value."""
        found = (self._reply or {}).get("user_expressions")
        value = found.get("value") if isinstance(found, dict) else None
        data = value.get("data") if isinstance(value, dict) else None
        text = data.get("text/plain") if isinstance(data, dict) else None
        return text if isinstance(text, str) else None

    def outcome(self, *, while_interrupting: bool) -> tuple[Outcome, str]:
        """How the cell ended and why; call it once the cell is over."""
        reply = self._reply or {}
        error = self._error or (reply if reply.get("status") == "error" else None)
        if error is None:
            return self._outcome_without_error(while_interrupting)
        name = as_text(error.get("ename"))
        # A cell can raise KeyboardInterrupt by itself, or turn our interrupt into another error.
        is_ours = self._is_interrupted and (name == "KeyboardInterrupt" or while_interrupting)
        detail = f"{name}: {as_text(error.get('evalue'))}".removesuffix(": ")[:1000]
        return (Outcome.INTERRUPTED if is_ours else Outcome.ERROR), detail

    def _outcome_without_error(self, while_interrupting: bool) -> tuple[Outcome, str]:
        if while_interrupting or (self._is_interrupted and self._reply is None):
            return Outcome.INTERRUPTED, ""
        if self._reply is None:
            return Outcome.ERROR, "the kernel ended the cell without a reply"
        return Outcome.OK, ""

    def result(self, outcome: Outcome, detail: str, now: float) -> CellResult:
        """The result with the output since the last result. The next result does not contain it."""
        output, self._output = self._output, CellOutput()
        outputs = output.outputs()
        return CellResult(
            outcome=outcome,
            text=readable(outputs),
            outputs=outputs,
            omitted=output.omitted,
            detail=detail,
            seconds=self.seconds(now),
        )
