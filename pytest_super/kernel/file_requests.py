"""The host's side of file requests to a sandbox: one at a time, with answers of bounded size."""

import errno
import os
import queue
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from itertools import count
from typing import Any

from pytest_super.kernel.incoming import file_answer
from pytest_super.kernel.value_types import Misfit

# Most bytes of an answer in JSON.
NAMES_LIMIT = 2**25
# A sandbox that does not send the next piece of a file within this time hangs.
ANSWER_SECONDS = 120.0


class FileRequest:
    """A request and what has arrived for it, which is never more than was asked for."""

    def __init__(self, number: int, limit: int | None) -> None:
        """The answer can have at most `limit` bytes. With None we send the data, not the sandbox."""
        self.number = number
        self._limit = limit
        # Whether the sandbox can ask for a piece: once for each piece that we send.
        self.expects_more = limit is None
        self.is_over = False
        self.answers: queue.Queue[tuple[str, dict[str, Any], bytes] | None] = queue.Queue()

    def accept(self, op: str, fields: dict[str, Any], payload: bytes) -> bool:
        """Whether the frame answers the request. The first that says or causes its end is the last."""
        if self.is_over or (op == "more" and not self.expects_more):
            return False
        if op == "data":
            if self._limit is None or not payload:
                return False
            self._limit -= len(payload)
            if self._limit < 0:
                # The bridge checks the limit too, but code inside can replace it.
                op, fields = "failed", {"errno": errno.EFBIG, "message": "Larger than allowed"}
        self.expects_more = False
        self.is_over = op in ("done", "failed")
        self.answers.put((op, fields, payload))
        return True


class FileChannel:
    """Handles one request at a time; others wait. The reader thread calls `answer` and `end`."""

    def __init__(
        self,
        send_control: Callable[..., None],
        *,
        lost: Callable[[], Exception],
        give_up: Callable[[str], None],
    ) -> None:
        """`lost` makes the exception for a sandbox that is gone; `give_up` ends one that does not answer."""
        self._send_control = send_control
        self._lost = lost
        self._give_up = give_up
        self._ids = count(1)
        self._request = FileRequest(0, 0)
        self._turn = threading.Lock()
        self._has_ended = False

    def answer(self, op: str, fields: dict[str, Any], payload: bytes) -> bool:
        """Accept an answer from the sandbox. Returns whether it belongs to the current request."""
        request = self._request
        return fields["id"] == request.number and request.accept(op, fields, payload)

    def end(self) -> None:
        self._has_ended = True
        self._request.answers.put(None)

    def data(self, op: str, path: str, limit: int = 0, **asked: Any) -> bytes:
        """What the sandbox answers, at most `limit` bytes."""
        with self._turn:
            self._ask(op, path, limit, **asked)
            return b"".join(iter(lambda: self._next_piece(path), None))

    def value(self, op: str, path: str, **asked: Any) -> Any:
        """An answer in JSON."""
        try:
            return file_answer(op, self.data(op, path, NAMES_LIMIT, **asked))
        except Misfit as misfit:
            raise OSError(errno.EBADMSG, f"The sandbox's answer is {misfit}", path) from None

    @contextmanager
    def sending(self, op: str, path: str, **asked: Any) -> Iterator[Callable[[bytes], int]]:
        """A request with data; gives a function that sends a piece when the sandbox asks for it."""

        def send(data: bytes) -> int:
            # After a failure `tarfile` still writes its buffer, for which nobody asks.
            if not self._request.is_over:
                self._next_piece(path)
                self._request.expects_more = True
                self._send_control("data", data)
            return len(data)

        with self._turn:
            request = self._ask(op, path, **asked)
            try:
                yield send
                self._next_piece(path)
            except BaseException:
                # Also for Ctrl-C: otherwise the sandbox would wait for the rest, and later requests for it.
                if not request.is_over:
                    self._send_control("end", aborted=True)
                raise
            self._send_control("end", aborted=False)
            self._next_piece(path)

    def _ask(self, op: str, path: str, limit: int | None = None, **asked: Any) -> FileRequest:
        self._request = request = FileRequest(next(self._ids), limit)
        if self._has_ended:
            request.answers.put(None)
        self._send_control(op, id=request.number, path=os.fspath(path), limit=limit, asked=asked)
        return request

    def _next_piece(self, path: str) -> bytes | None:
        """The next piece of the current answer; None at its end. Raises OSError, and what `lost` makes."""
        answers = self._request.answers
        try:
            answer = answers.get(timeout=ANSWER_SECONDS)
        except queue.Empty:
            self._give_up(f"it did not answer a file request for {ANSWER_SECONDS:.0f} seconds")
            # `lost` knows the reason only when the reader thread has reported the end.
            while (answer := answers.get()) is not None:
                pass
        if answer is None:
            # The end is reported once, and `_sending` can ask again.
            answers.put(None)
            raise self._lost()
        op, fields, payload = answer
        if op == "failed":
            # As if it had been raised on the host.
            number, message = fields["errno"], fields["message"]
            raise OSError(f"{message}: {path!r}") if number is None else OSError(number, message, path)
        return None if op == "done" else payload
