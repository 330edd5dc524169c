"""Refuses machines that cannot take part in the run. Each is looked at before its worker starts."""

from __future__ import annotations

import inspect
import sys
from collections.abc import Iterator
from importlib.metadata import version
from pathlib import Path
from time import time
from typing import TYPE_CHECKING, Any

import pytest

from pytest_super.session.settings import usage_errors
from pytest_super.store.json_lines import disk_errors

if TYPE_CHECKING:
    from execnet import Channel

    from pytest_super.session.run import Run

# Seconds. More than a slow network and a clock that nobody has set for weeks explain.
CLOCKS_APART = 60.0


def refuse_unfit(node: Any, run: Run) -> None:
    """Called by the controller. Raises pytest.UsageError."""
    directory = run.settings.directory
    # A name of its own, because a network file system can remember what it has shown.
    seen = directory / f".{run.id}-{node.gateway.id}"
    with usage_errors(), disk_errors(directory):
        seen.mkdir(parents=True)
    try:
        began = time()
        told = ask(node, seen)
        wrong = next(about(told, directory, began, time()), None)
    finally:
        seen.rmdir()
    if wrong:
        raise pytest.UsageError(f"{told['host']} cannot have a worker of the run: {wrong}")


def ask(node: Any, seen: Path) -> dict[str, Any]:
    # As text, because the machine can have another version of this package, or none.
    code = f"from __future__ import annotations\n{inspect.getsource(tell)}\ntell(channel)"
    channel = node.gateway.remote_exec(code)
    # xdist gives a worker that it starts as a process the path of the controller.
    channel.send((str(seen), sys.path if node.gateway.spec.popen else None))
    told: dict[str, Any] = channel.receive()
    # The worker cannot start before this has ended.
    channel.waitclose()
    return told


def tell(channel: Channel) -> None:
    """Runs on the worker's machine, alone."""
    import os
    import socket
    import sys
    import time
    from importlib.metadata import distributions

    folder, path = channel.receive()
    sys.path = path or sys.path
    has = [f"pytest-super {ours.version}" for ours in distributions(name="pytest-super")]
    told = {"host": socket.gethostname(), "python": sys.executable, "has": (has or ["no pytest-super"])[0]}
    channel.send({**told, "sees": os.path.isdir(folder), "time": time.time()})


def about(told: dict[str, Any], directory: Path, began: float, ended: float) -> Iterator[str]:
    """What is wrong, and what to do. The machine was asked between the two times of this one."""
    if not told["sees"]:
        yield (
            f"it does not see {directory}, where this machine writes the results: "
            "put the project on a file system that all machines share, at the same path"
        )
    if told["has"] != (ours := f"pytest-super {version('pytest-super')}"):
        yield f"its {told['python']} has {told['has']}, this machine's {ours}: install the same on both"
    ahead = max(told["time"] - ended, 0.0) or min(told["time"] - began, 0.0)
    if abs(ahead) > CLOCKS_APART:
        how = "ahead" if ahead > 0 else "behind"
        yield (
            f"its clock is {abs(ahead):,.0f} s {how}, so results would have wrong times, and with an hour or "
            "more a run takes containers in use for abandoned ones: set the clocks, for example by NTP"
        )
