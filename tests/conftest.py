"""For all tests. Any pytest that starts in the project reads it: it imports nothing that only tests need."""

import gc
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import chdir, redirect_stderr, redirect_stdout
from functools import cache
from importlib.metadata import PathDistribution
from io import StringIO
from pathlib import Path
from types import FunctionType, ModuleType
from typing import TYPE_CHECKING, Any

import pytest

from pytest_super import platform
from pytest_super.store.user_cache import cache_folder

if TYPE_CHECKING:  # It needs pytest-httpserver, which is not installed where only the shipped tasks run.
    from tests.openai_server import OpenAIServer

# The tests start hundreds of processes. Each would compile the package again.
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
sys.dont_write_bytecode = False

# What tests parse lives shortly, and the modules always: searching them takes a fifth of the unit tests.
gc.set_threshold(100_000, 50, 1000)

# A shell's background jobs ignore SIGINT, and hand that on; the tests and their processes obey it.
platform.obey_interrupts()

if os.environ.get("SUPER_TEST_PORTABLE"):
    platform.use_portable()


def read_once(name: str) -> None:
    """Let this process read a property of each installed package once."""
    read = getattr(PathDistribution, name).fget
    known = cache(lambda path: read(PathDistribution(path)))
    setattr(PathDistribution, name, property(lambda package: known(package._path)))


# Every run reads these of all packages, some of them several times, which takes half of a short run.
for name in ("entry_points", "files", "metadata"):
    read_once(name)

# For runs that tests start. Importing these plugins, which no test needs there, takes half of a short run.
LEAN = tuple(f"-pno:{name}" for name in ("hypothesispytest", "pytest_httpserver", "anyio", "platformdirs"))


def show_hooks_and_fixtures(plugin: ModuleType) -> None:
    """Let `dir` list these of a plugin alone: every run looks at all that it lists, a fifth of its time."""
    names = [
        name
        for name, value in vars(plugin).items()
        if name.startswith("pytest_")
        or type(value).__name__ == "FixtureFunctionDefinition"
        or (isinstance(value, FunctionType) and hasattr(value, "_pytestfixturefunction"))
    ]
    vars(plugin)["__dir__"] = lambda: names


@pytest.fixture(scope="session")
def _imported(pytestconfig: pytest.Config) -> None:
    """Import what runs need before any of them: pytester removes the modules that a test imports.

    Their packages would keep them as attributes, and the next run would find two copies of a module.
    Importing them again would take a quarter of a short run.
    """
    import jupyter_client.session  # noqa: F401
    import regex  # noqa: F401
    import scipy.special  # noqa: F401
    import xdist.dsession  # type: ignore[import-untyped]  # noqa: F401

    import pytest_super.agents.react
    import pytest_super.kernel.client
    import pytest_super.kernel.providers.local
    import pytest_super.metrics.script_runs.trial_runs
    import pytest_super.session.activation
    import pytest_super.session.controller.controller
    import pytest_super.session.controller.final_files
    import pytest_super.session.controller.live
    import pytest_super.session.trial.ended_trial
    import pytest_super.session.trial.kernels
    import pytest_super.session.trial.models
    import pytest_super.session.workers.workers
    import pytest_super.sources.beside
    import pytest_super.tasks.public_task
    import pytest_super.testing  # noqa: F401

    for plugin in pytestconfig.pluginmanager.get_plugins():
        if isinstance(plugin, ModuleType):
            show_hooks_and_fixtures(plugin)


# What litellm reads in the names of models. Each test would import it again, which takes seconds.
MODELS = cache_folder("models")


@pytest.fixture
def _own_cache(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> None:
    """Let the test have a user's cache of its own, but for what is known of models."""
    folder = tmp_path_factory.mktemp("cache")
    (folder / "pytest-super").mkdir()
    (folder / "pytest-super/models").symlink_to(MODELS)
    MODELS.mkdir(parents=True, exist_ok=True)
    monkeypatch.setenv("XDG_CACHE_HOME", str(folder))


@pytest.fixture(scope="session")
def forks_of_all_runs(_imported: None) -> Callable[[str], Path]:
    """Of which process a local sandbox is a fork: of one for all runs in this process, not of one for each.

    To import what kernels need takes a second.
    """
    from pytest_super.kernel.providers import warm_kernels

    start, folder, started = warm_kernels.socket_of, tempfile.gettempdir(), set[Path]()

    def socket_of(_: str) -> Path:
        if not any(socket.exists() for socket in started):
            with pytest.MonkeyPatch.context() as patch:
                patch.setattr(warm_kernels, "IDLE_SECONDS", 20.0)
                patch.setattr(tempfile, "tempdir", folder)
                started.add(start(f"tests-{os.getpid()}"))
        return min(started)

    return socket_of


@pytest.fixture
def pytester(
    _own_cache: None,
    forks_of_all_runs: Callable[[str], Path],
    pytester: pytest.Pytester,
    monkeypatch: pytest.MonkeyPatch,
) -> pytest.Pytester:
    monkeypatch.setenv("PYTEST_ADDOPTS", " ".join(LEAN))
    monkeypatch.setattr("pytest_super.kernel.providers.warm_kernels.socket_of", forks_of_all_runs)
    return pytester


def read_lines(path: Path) -> list[dict[str, Any]]:
    """The objects in a file of JSON lines."""
    return [json.loads(line) for line in path.read_text().splitlines()]


class TaskFolder:
    """A folder with files and tasks, in which subcommands run."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def write(self, name: str, content: Any) -> Path:
        """What is not text is written as JSON."""
        path = self.path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(content if isinstance(content, str) else json.dumps(content), encoding="utf-8")
        return path

    def add_task(self, id: str, file: str = "", **fields: Any) -> None:
        """Write a task file; JSON is YAML. A field that is None is left out."""
        task = {"id": id, "set": "expert", "query": "do it", "answer": 42, **fields}
        given = {name: value for name, value in task.items() if value is not None}
        self.write(f"tasks/{file or id}.task.yaml", given)

    def command(self, *arguments: str | Path) -> subprocess.CompletedProcess[str]:
        """Run a subcommand in this process, where each import is paid for once."""
        from pytest_super.cli import main

        given = [str(argument) for argument in arguments]
        out, err = StringIO(), StringIO()
        with chdir(self.path), redirect_stdout(out), redirect_stderr(err):
            status = main(given)
        return subprocess.CompletedProcess(given, status, out.getvalue(), err.getvalue())

    @property
    def latest(self) -> Path:
        return self.path / ".super/runs/latest"

    @property
    def rows(self) -> list[dict[str, Any]]:
        """The results of the last run."""
        return read_lines(self.latest / "results.jsonl")

    @property
    def calls(self) -> list[dict[str, Any]]:
        """The calls of the model in the last run."""
        return read_lines(self.latest / "calls.jsonl")


@pytest.fixture
def folder(tmp_path: Path) -> TaskFolder:
    return TaskFolder(tmp_path)


@pytest.fixture
def openai_server() -> Iterator["OpenAIServer"]:
    """A server of this test's own; nothing that hangs in it holds up the end of the test."""
    from tests.openai_server import running_server

    with running_server() as server:
        yield server


@pytest.fixture
def openai_environment(openai_server: "OpenAIServer", monkeypatch: pytest.MonkeyPatch) -> "OpenAIServer":
    """The server, where clients in this process and its children find it."""
    for name, value in openai_server.environment.items():
        monkeypatch.setenv(name, value)
    return openai_server


@pytest.fixture
def is_synced(monkeypatch: pytest.MonkeyPatch) -> Callable[[Path], bool]:
    """Whether this process has flushed the present content of a file to the disk."""
    flushed = set()
    fsync = os.fsync

    def watch(descriptor: int) -> None:
        fsync(descriptor)
        found = os.fstat(descriptor)
        flushed.add((found.st_ino, found.st_size))

    monkeypatch.setattr(os, "fsync", watch)
    return lambda path: (path.stat().st_ino, path.stat().st_size) in flushed
