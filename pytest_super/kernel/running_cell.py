"""One cell from its request to its end, as the kernel's messages report it, and where its output goes."""

from collections.abc import Callable
from typing import Any

from pytest_super.kernel.cell import WENT_ON, CellResult, Outcome
from pytest_super.kernel.incoming import Message
from pytest_super.kernel.inside import frames
from pytest_super.kernel.output import CellOutput, readable
from pytest_super.kernel.schema import OUTPUT

Listener = Callable[[str], None]

OUTPUT_KINDS = frozenset((*OUTPUT, "clear_output"))
# Messages that only the cell that sent them can use.
OWN_KINDS = frozenset(("clear_output", "error"))


def execute_request(code: str, expression: str | None = None) -> dict[str, Any]:
    """The content of a cell's execute_request, or of one that only evaluates `expression`, unrecorded."""
    is_seen = expression is None
    return {
        # A model can write half of a surrogate pair, which cannot be encoded.
        "code": code.encode("utf-8", "replace").decode(),
        "silent": not is_seen,
        "store_history": is_seen,
        "user_expressions": {} if is_seen else {"value": expression},
        "allow_stdin": False,
        # With True the kernel refuses the requests that follow an error for a while.
        "stop_on_error": False,
    }


class Probe:
    """A request that is sent for what it shows: the kernel has come so far, and its messages arrive."""

    def __init__(self, request_id: str) -> None:
        self._id = request_id
        self.has_begun = False
        """Whether a message has arrived that the kernel published when it handled the request."""
        self.is_answered = False

    def handle(self, message: Message) -> None:
        if message.parent == self._id:
            self.has_begun |= message.channel == frames.IOPUB
            self.is_answered |= message.channel == frames.SHELL


class Running:
    """What runs in a sandbox, with its output and its clock. Changed under the lock of its LiveKernel."""

    def __init__(self, output: CellOutput, started: float) -> None:
        self._output = output
        self._started = started
        self._ended: float | None = None

    def stop(self, now: float) -> None:
        """It does not run any more, whatever was reported."""
        if self._ended is None:
            self._ended = now

    def seconds(self, now: float) -> float:
        return (now if self._ended is None else self._ended) - self._started

    def result(self, outcome: Outcome, detail: str, now: float) -> CellResult:
        """The result with the output so far."""
        outputs = self._output.outputs()
        return CellResult(
            outcome=outcome,
            text=readable(outputs),
            outputs=outputs,
            omitted=self._output.omitted,
            detail=detail,
            seconds=self.seconds(now),
        )


class RunningCell(Running):
    """The state of one cell. The reader thread changes it.

    The cell is over when its reply and its idle message have arrived, in either order. Code in the cell, or
    an interrupt at the wrong moment, can swallow one of the two. Then the cell is over when the kernel has
    begun to handle a later request, our probe, and has answered it: the kernel handles one request at a time,
    so by then all output of the cell has arrived, and its reply, each on its own channel. The order of
    messages on different channels is undefined. A cell that ends its kernel is over when the kernel is dead.

    The clock of the cell runs until it is over: code can send an idle message or a reply long before its end.
    """

    def __init__(self, request_id: str, *, output: CellOutput, started: float) -> None:
        super().__init__(output, started)
        self.interrupts = 0
        self.why_kernel_ends = ""
        """Why this cell ends the kernel; "" if it does not."""
        self.has_begun = False
        """Whether the kernel has announced the cell: from then on an interrupt reaches it."""
        self.probe: Probe | None = None
        """The probe that was sent after the request, if any."""
        self._id = request_id
        self._reply: dict[str, Any] | None = None
        self._is_idle = False
        self._error: dict[str, Any] | None = None

    # Messages of the kernel

    def owns(self, message: Message) -> bool:
        """Whether the request of this cell caused the message."""
        return message.parent == self._id

    def handle(self, message: Message, now: float) -> None:
        """Handle a message about the progress of the cell."""
        content = message.content
        if self.owns(message):
            if message.kind == "execute_input":
                self.has_begun = True
            elif message.kind == "execute_reply":
                self._reply = content
                if asks_to_exit(content):
                    self.why_kernel_ends = "the cell ended it"
            elif message.kind == "status" and content["execution_state"] == "idle":
                self._is_idle = True
        if self.is_over:
            self.stop(now)

    def add_output(self, message: Message) -> str:
        """Add the output in a message to the cell's; returns its text."""
        if message.kind == "error" and self.owns(message):
            self._error = message.content
        return self._output.add(message.kind, message.content)

    # State

    @property
    def is_over(self) -> bool:
        is_superseded = self.probe is not None and self.probe.has_begun and self.probe.is_answered
        return not self.why_kernel_ends and (is_superseded or (self._is_idle and self._reply is not None))

    def of_expression(self, *place: str) -> str:
        """What the reply has at a place of the expression's value, or of its error; "" if nothing."""
        found: Any = self._reply
        for name in ("user_expressions", "value", *place):
            found = found and found[name]
        return found or ""

    def result(self, outcome: Outcome, detail: str, now: float) -> CellResult:
        """The result with the output since the last result."""
        result = super().result(outcome, detail, now)
        self._output = CellOutput()
        return result

    def outcome(self, *, while_interrupting: bool) -> tuple[Outcome, str]:
        """How the cell ended and why; call it once the cell is over."""
        reply = self._reply or {}
        error = self._error or (reply if reply.get("status") == "error" else None)
        if error is None:
            return self._outcome_without_error(while_interrupting)
        name = error["ename"] or ""
        # A cell can raise KeyboardInterrupt by itself, or turn our interrupt into another error.
        is_ours = self.interrupts and (name == "KeyboardInterrupt" or while_interrupting)
        detail = f"{name}: {error['evalue'] or ''}".removesuffix(": ")[:1000]
        return (Outcome.INTERRUPTED if is_ours else Outcome.ERROR), detail

    def _outcome_without_error(self, while_interrupting: bool) -> tuple[Outcome, str]:
        if while_interrupting or (self.interrupts and self._reply is None):
            return Outcome.INTERRUPTED, WENT_ON if self._reply and self._reply["status"] == "ok" else ""
        # Code inside can also make the kernel refuse a cell, with the status "aborted".
        if self._reply is None or self._reply.get("status") == "aborted":
            return Outcome.ERROR, "the kernel ended the cell without a reply"
        return Outcome.OK, ""


def asks_to_exit(reply: dict[str, Any]) -> bool:
    """Whether code has called IPython's `exit`: the kernel ends soon after its reply."""
    return any(one["source"] == "ask_exit" and not one["keepkernel"] for one in reply["payload"] or ())


class Listeners:
    """The listeners of all cells, because background processes of a cell can write after its end.

    Such output goes to the cell that runs then. Output that arrives while no cell runs is kept for the next
    cell. Call `add`, `add_output` and `take_leftover` with the lock of the LiveKernel, and `notify` without
    it, because a listener can be slow.
    """

    def __init__(self) -> None:
        self._by_request: dict[str, Listener | None] = {}
        self._leftover = CellOutput()
        self._error: Exception | None = None

    def add(self, request_id: str, listener: Listener | None) -> None:
        self._by_request[request_id] = listener

    def take_leftover(self) -> CellOutput:
        """The output that arrived while no cell ran."""
        taken, self._leftover = self._leftover, CellOutput()
        return taken

    def add_output(self, message: Message, running: RunningCell | None) -> tuple[Listener | None, str]:
        """Store the output in a message. Returns its text and the listener of the cell that caused it."""
        is_own = running is not None and running.owns(message)
        is_from_earlier = message.parent in self._by_request and message.kind not in OWN_KINDS
        if not (is_own or is_from_earlier):
            return None, ""
        if running is None:
            # The listener of the next cell gets this output, not that of the cell that caused it.
            self._leftover.add(message.kind, message.content)
            return None, ""
        return self._by_request.get(message.parent), running.add_output(message)

    def notify(self, listener: Listener | None, text: str) -> None:
        if listener is None or not text:
            return
        try:
            listener(text)
        except Exception as error:
            # The reader thread must go on. `raise_error` raises it in the caller's thread.
            self._error = error

    def raise_error(self) -> None:
        """Raise the exception that a listener has raised since the last call."""
        error, self._error = self._error, None
        if error is not None:
            raise error
