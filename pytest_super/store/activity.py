"""What a trial is doing at this moment, in a small file of its folder, for the process that shows the run."""

import json
import os
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from pytest_super.reading import read_bytes
from pytest_super.store.trajectory import MANY_REPEATS

FILE = "activity.json"
# Actions have the names that agents give them.
LONGEST = 60


@dataclass(frozen=True, kw_only=True)
class Doing:
    """One state of an activity, as plain JSON values, because it crosses processes."""

    what: str
    since: float
    """Seconds since the epoch, because the reader can be on another machine."""
    waits_for: str = ""
    """What keeps the model from answering; "" if nothing is known."""
    step: int = 0
    """The number of the step under way; 0 before the agent's first one."""
    repeats: int = 0
    """How many equal steps came before it."""
    tokens: int = 0
    cost_usd: float | None = None

    def __str__(self) -> str:
        repeats = f" after {self.repeats} equal ones" if self.repeats >= MANY_REPEATS else ""
        step = f"step {self.step}{repeats}, " if self.step else ""
        return f"{step}{self.what}{': ' if self.waits_for else ''}{self.waits_for}"


class Activity:
    """Publishes each change. Used from any thread."""

    def __init__(self, publish: Callable[[Doing], None], what: str) -> None:
        self._publish = publish
        self._lock = threading.RLock()
        self.now: Doing
        self.begin(what)

    def begin(self, what: str, used: Callable[[], dict[str, Any]] = dict) -> None:
        """Enter the next phase. `used` returns other fields of a Doing, which change meanwhile."""
        with self._lock:
            self._under_way = [[what]]
            self._used = used
            self.change()

    @contextmanager
    def doing(self, what: str) -> Iterator[None]:
        """Marks a part of the phase. One that Ctrl-C ends remains, so that the result can name it."""
        entry = [what[:LONGEST]]
        with self._lock:
            self._under_way.append(entry)
            self.change()
        try:
            yield
        except KeyboardInterrupt:
            raise
        except BaseException:
            self._end(entry)
            raise
        self._end(entry)

    def _end(self, entry: list[str]) -> None:
        with self._lock:
            # By identity, because two threads can do the same.
            self._under_way = [one for one in self._under_way if one is not entry]
            self.change()

    def waits_for(self, reason: str) -> None:
        """The model's answer waits for this; "" when it has arrived."""
        with self._lock:
            if reason != self.now.waits_for:
                self.now = replace(self.now, waits_for=reason)
                self._publish(self.now)

    def change(self) -> None:
        """Publish what `used` returns now."""
        with self._lock:
            self.now = Doing(what=self._under_way[-1][0], since=time.time(), **self._used())
            self._publish(self.now)


class ActivityFile:
    """The file of a trial's activity, which exists while the trial runs."""

    def __init__(self, folder: Path) -> None:
        """Raises OSError."""
        self._path = folder / FILE
        self._file = self._path.open("wb", buffering=0)

    def write(self, doing: Doing) -> None:
        """Write the first line. Not atomically, which takes a hundred times as long, several times a step."""
        # Activities are only shown: what a trial cannot do without reports a full disk. A closed file raises
        # ValueError; a thread that an agent left behind can come here.
        with suppress(OSError, ValueError):
            os.pwrite(self._file.fileno(), f"{json.dumps(asdict(doing))}\n".encode(), 0)

    def close(self) -> None:
        """Remove the file. Idempotent."""
        self._file.close()
        with suppress(OSError):
            self._path.unlink(missing_ok=True)


def read_doing(folder: Path) -> Doing | None:
    """What the trial with this folder is doing, or was doing when its process died; None if it has ended.

    Also None, until the next look, if the line is being written at this moment.
    """
    try:
        line, _, _ = read_bytes(folder / FILE).partition(b"\n")
        return Doing(**json.loads(line))
    except (OSError, ValueError, TypeError):
        return None


def newest_doing(run: Path, name: str) -> Doing | None:
    """The same for the newest rerun of the trial with this name, `id` or `id[epoch]`."""
    task, _, epoch = name.removesuffix("]").partition("[")
    folders = (run / "trials" / task).glob(f"{epoch or 1}.*")
    newest = max(folders, key=lambda folder: int(folder.suffix[1:]), default=None)
    return None if newest is None else read_doing(newest)
