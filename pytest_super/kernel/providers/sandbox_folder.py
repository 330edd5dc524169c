"""The folder of a sandbox on this machine, and whether the process that owns a sandbox still lives."""

import os
import secrets
import tempfile
from contextlib import suppress
from pathlib import Path

from pytest_super.errors import InfrastructureError
from pytest_super.kernel.inside.processes import KEEP, remove
from pytest_super.kernel.providers import PREFIX
from pytest_super.kernel.providers.host_environment import Interpreter, make_environment
from pytest_super.platform import host

OWNER = "owner"
PARTS = ("work", "home", "tmp", "venv")
# Others pass it, and have to know what they look for.
OPEN_FOLDER = 0o711


class SandboxFolder:
    """`work`, `home`, `tmp` and the virtual environment `venv` of one sandbox. Only this user can enter."""

    def __init__(self, name: str = "") -> None:
        """Choose the path, by a name of one's own or none; `make` creates it."""
        # Short, because the paths of sockets in it have a limit.
        # Resolved, because cells see the real path of their working directory.
        self.path = Path(tempfile.gettempdir()).resolve() / f"{PREFIX}{name or secrets.token_hex(6)}"

    def make(self, environment: Path | None = None, interpreter: Interpreter | None = None) -> None:
        """Create it, with the `interpreter` below `venv`, inside at `environment`. Raises OSError."""
        self.path.mkdir(0o700)
        # First, because a sweep only finds folders with an owner.
        (self.path / OWNER).write_text(owner_label())
        for name in PARTS[:-1]:
            (self.path / name).mkdir()
        make_environment(self.path / "venv", environment, interpreter)

    def give(self, user: int) -> None:
        """Make all in it another user's, with a group of the same id. Root only. Raises OSError."""
        for folder, folders, files in os.walk(self.path):
            for name in (*folders, *files):
                os.chown(os.path.join(folder, name), user, user, follow_symlinks=False)
        for name in PARTS:
            (self.path / name).chmod(0o700)
        self.path.chmod(OPEN_FOLDER)

    def keep(self) -> None:
        """Exempt the folder from `remove` and sweeps. Raises InfrastructureError when it does not exist."""
        try:
            (self.path / KEEP).touch()
        except OSError as error:
            raise InfrastructureError(f"the sandbox's files are gone: {error}") from error

    def remove(self) -> None:
        remove([str(self.path)])


def sweep_folders() -> None:
    """Remove the folders of sandboxes whose owner is dead, except those that were kept."""
    for owner in Path(tempfile.gettempdir()).glob(f"{PREFIX}*/{OWNER}"):
        with suppress(OSError):
            # OSError: the folder is of another user, or another sweep has just removed it.
            if lives(owner.read_text()) is False:
                remove([str(owner.parent)])


def owner_label() -> str:
    """This process in the form that `lives` reads: its host, its pid and its start time."""
    return f"{host().host_id()}:{os.getpid()}:{host().start_time(os.getpid())}"


def lives(owner: str) -> bool | None:
    """Whether the owner still runs. None for owners on other hosts, of which nothing is known."""
    host_id, _, process = owner.partition(":")
    pid, _, started = process.partition(":")
    if host_id != host().host_id() or not pid.isdecimal():
        return None
    # A process with another start time is a later one with the same pid.
    return host().start_time(int(pid)) == started
