"""Where output goes: to the running cell, and to the listener of the cell that caused it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pytest_super.kernel.incoming import OUTPUT
from pytest_super.kernel.output import CellOutput

if TYPE_CHECKING:
    from collections.abc import Callable

    from pytest_super.kernel.incoming import Message
    from pytest_super.kernel.running_cell import RunningCell

    Listener = Callable[[str], None]

OUTPUT_KINDS = frozenset((*OUTPUT, "clear_output"))
# Messages that only the cell that sent them can use.
OWN_KINDS = frozenset(("clear_output", "error"))


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
