"""The compute limit between cells: everything inside is stopped, and only a submission is left.

A cell that reaches the limit is cut by its time-out, and the trial ends.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pytest_super.kernel.client import Kernel
    from pytest_super.trial.budget import Budget


class ComputeLimit:
    """Meters what runs in the kernel's sandbox, and stops it when the compute limit is reached."""

    def __init__(self, budget: Budget, kernel: Callable[[], Kernel]) -> None:
        self._budget = budget
        self._kernel = kernel
        # Held while a cell is waited for.
        self._waiting = threading.Lock()
        self._has_stopped = False
        self._is_over = False

    def start(self) -> None:
        """From now on, charge the budget for what runs in the sandbox."""
        kernel = self._kernel()
        self._budget.start_metering(lambda: kernel.busy_seconds)
        kernel.meter(self._charge)

    def end(self) -> None:
        """From now on, charge for nothing and stop nothing: what runs now is not the agent's."""
        self._is_over = True
        self._budget.stop_metering()

    def _charge(self, processor_seconds: float) -> None:
        if self._is_over:
            return
        self._budget.charge_work(processor_seconds)
        if self._waiting.acquire(blocking=False):
            try:
                self.stop_if_reached()
            finally:
                self._waiting.release()

    @contextmanager
    def put_off(self) -> Iterator[None]:
        """This block waits for a cell. Its own time-out ends it at the limit, so nothing is stopped here."""
        with self._waiting:
            yield

    def stop_if_reached(self) -> bool:
        """Stop everything in the sandbox if the limit is reached. Returns whether it is."""
        is_reached = self._budget.is_compute_spent
        if is_reached and not self._has_stopped:
            self._has_stopped = True
            self._kernel().kill()
        return is_reached

    def counted(self, listener: Callable[[str], None]) -> Callable[[str], None]:
        """A listener that passes on the output of cells until the limit is reached."""

        def listen(text: str) -> None:
            if not self._budget.is_compute_spent:
                listener(text)

        return listen
