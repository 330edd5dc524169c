"""Decides when a kernel is ready: once a message that it published has arrived."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pytest_super.kernel.inside import frames

if TYPE_CHECKING:
    from pytest_super.kernel.link import Message

# How long the published message of an answered request can take before the next request.
PROOF_SECONDS = 0.02


class Readiness:
    """Follows requests for information until one is answered and its message on IOPub has arrived.

    The answer alone proves nothing: the subscription to IOPub may not be established yet, and whatever is
    published before that is lost without a trace. A print sent right after the first answer was lost in six
    of eight fresh kernels.
    """

    def __init__(self) -> None:
        self._requests: set[str] = set()
        self.answers = 0
        self.is_proven = False

    def reset(self) -> None:
        """Start again for a restarted kernel."""
        self._requests.clear()
        self.is_proven = False

    def asked(self, request_id: str) -> None:
        self._requests.add(request_id)

    def has_more_than(self, answers: int) -> bool:
        return self.answers > answers

    def handle(self, message: Message) -> bool:
        """Handle a message. Returns whether one of our requests caused it."""
        if message.parent not in self._requests:
            return False
        self.is_proven |= message.channel == frames.IOPUB
        self.answers += message.channel == frames.SHELL
        return True
