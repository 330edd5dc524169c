"""Prefixes that are run once: trials that start from a snapshot find what they would have found without."""

import dataclasses
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple, Protocol

import pytest

from pytest_super.kernel.cell import Outcome
from pytest_super.kernel.client import Kernel
from pytest_super.kernel.providers.docker.sandbox import DockerSandbox
from pytest_super.kernel.sandbox import SandboxSettings
from pytest_super.snapshots.prefix import Prefix, RestoredPrefix, SavedPrefix, UnlikeError, prefix_of
from pytest_super.store.trajectory import Step
from pytest_super.tasks.task import Task

pytestmark = pytest.mark.docker

# Another text each time that it is run.
STAMP = "!cat /proc/sys/kernel/random/uuid > stamp"
TASK: dict[str, Any] = {"set": "masked", "category": "data", "query": "q", "answer": 42}


# Single trials, up to the end of their prefix


class Trial(NamedTuple):
    prefix: Prefix
    steps: list[Step]
    kernel: Kernel

    def show(self, expression: str) -> str:
        """What the agent would be shown of the expression."""
        return self.kernel.execute(f"import os\nprint({expression})").text


class Begin(Protocol):
    """Begins a trial with this prefix, in a container of its own."""

    def __call__(self, *prefix: Any, pip_config: Path | None = ..., **sandbox: Any) -> Trial: ...


@pytest.fixture
def cache(tmp_path: Path) -> Path:
    return tmp_path / "snapshots"


@pytest.fixture
def begin(settings: SandboxSettings, cache: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Begin]:
    monkeypatch.setattr("pytest_super.snapshots.prefix.WORTH_SECONDS", 0.0)
    kernels: list[Kernel] = []

    def begin_trial(*prefix: Any, pip_config: Path | None = None, **sandbox: Any) -> Trial:
        task = Task.model_validate({**TASK, "id": "one", "pre_execute": list(prefix), "sandbox": sandbox})
        container = DockerSandbox(task.sandbox, dataclasses.replace(settings, pip_config=pip_config))
        chosen = prefix_of(task, container, may_make=True, folder=cache)
        kernels.append(Kernel(container))
        kernels[-1].start()
        chosen.prepare(kernels[-1])
        return Trial(chosen, list(chosen.steps(kernels[-1])), kernels[-1])

    yield begin_trial
    for kernel in kernels:
        kernel.close()


def records_in(folder: Path) -> list[dict[str, Any]]:
    return [json.loads(path.read_text()) for path in folder.glob("*.json")]


@pytest.mark.slow
def test_a_trial_from_a_snapshot_finds_what_the_prefix_leaves(begin: Begin) -> None:
    prefix = (
        "!mkdir deep",
        "%env LEVEL=3",
        f"{STAMP.replace('> stamp', '> deep/stamp')}; printf $LEVEL > deep/level",
        {"edit": {"path": "deep/level", "before": "3", "after": "4"}},
        {"cell": "made = open('deep/made', 'w').write('5')", "files": True},
        "%cd deep",
        "k = open('level').read()\nopen('more', 'w').write('1')",
        "!echo 2 >> more",
    )
    first, second = begin(*prefix), begin(*prefix)
    assert isinstance(first.prefix, SavedPrefix)
    assert isinstance(second.prefix, RestoredPrefix)
    left = "os.getcwd(), os.environ['LEVEL'], k, [open(name).read() for name in sorted(os.listdir())]"
    assert first.show(left) == second.show(left)
    assert second.show("os.getcwd(), k, open('more').read()") == "/workspace/deep 4 12\n\n"
    assert first.show("made") == "1\n"
    assert "NameError" in second.show("made")
    told = [
        [(step.number, step.origin, step.action, step.outcome, step.observation) for step in trial.steps]
        for trial in (first, second)
    ]
    assert told[0] == told[1]
    assert len(told[0]) == len(prefix)


@pytest.mark.slow
def test_files_are_as_if_they_had_been_written_in_the_trial(begin: Begin) -> None:
    prefix = (
        "!mkdir -p deep/er; touch -d '2001-02-03 04:05:06.123456789Z' deep/er/old; ln -s er deep/link; "
        "echo 1 > deep/a; ln deep/a deep/b; chmod 751 deep/a; rm /etc/debian_version"
    )
    begin(prefix)
    second = begin(prefix)
    assert second.show(
        "os.rename('deep', 'moved'), os.stat('moved/er/old').st_mtime_ns, os.readlink('moved/link'), "
        "os.stat('moved/a').st_ino == os.stat('moved/b').st_ino, oct(os.stat('moved/a').st_mode & 0o777), "
        "os.path.exists('/etc/debian_version'), "
        "[name for name in os.listdir('/') if name.startswith('.pytest')]"
    ) == ("None 981173106123456789 er True 0o751 False []\n")


@pytest.mark.slow
def test_a_snapshot_that_would_give_another_kernel_is_not_used(begin: Begin) -> None:
    # A running kernel does not see what `pip install -e` adds to its path; one that starts after it does.
    install = (
        "import site, pathlib; pathlib.Path(site.getsitepackages()[0], 'x.pth').write_text('/workspace')"
    )
    begin(f'!python3 -c "{install}"')
    with pytest.raises(UnlikeError, match="module path"):
        begin(f'!python3 -c "{install}"')


@pytest.mark.slow
@pytest.mark.parametrize(
    ("cell", "reason"),
    [
        ("!echo 10.0.0.7 data.example >> /dev/shm/x", "writes where no files are saved"),
        ("!echo 10.0.0.7 data.example >> /etc/hosts", "writes where no files are saved"),
        ("%%bash\nsetsid sleep 600 > /dev/null 2>&1 &", "leaves processes running"),
        # Nothing is left to pack it with.
        ("!rm /bin/tar", "could not be saved"),
        ("!truncate -s 1T sparse", "the files have more than"),
    ],
)
def test_a_prefix_that_cannot_be_saved_is_run_by_every_trial(
    begin: Begin, cache: Path, cell: str, reason: str
) -> None:
    assert begin(cell, disk="100MB").steps[0].outcome == Outcome.OK
    (record,) = records_in(cache)
    assert reason in record["useless"]
    assert not list(cache.glob("*.tar"))


@pytest.mark.slow
def test_a_snapshot_has_no_settings_of_this_machine(begin: Begin, cache: Path, tmp_path: Path) -> None:
    config = tmp_path / "pip.conf"
    config.write_text("[global]\nindex-url = https://user:secret@host/simple\n")
    for _ in range(2):
        trial = begin(STAMP, pip_config=config)
        assert trial.show("'secret' in open('/etc/pytest-super/pip.conf').read()") == "True\n"
    (archive,) = cache.glob("*.tar")
    assert b"secret" not in archive.read_bytes()


# Runs


class Project:
    """Task files in a folder, with a cache of their own."""

    def __init__(self, pytester: pytest.Pytester, cache: Path) -> None:
        self.pytester = pytester
        self.cache = cache / "pytest-super/snapshots"

    def task(self, id: str = "one") -> None:
        cells = ["print('stamp', open('stamp').read())", "42"]
        data = {**TASK, "id": id, "pre_execute": [STAMP], "solution": {"cells": cells}}
        folder = self.pytester.path / id
        folder.mkdir(exist_ok=True)
        (folder / f"{id}.task.yaml").write_text(json.dumps(data))

    def stamps(self, *options: str) -> list[str]:
        """The stamps that the trials of a run saw; all of them have to be solved."""
        result = self.pytester.runpytest("--super-agent=gold", ".", *options)
        assert result.ret == 0, result.stdout.str()
        folder = self.pytester.path / ".super/runs/latest/trials"
        texts = [path.read_text() for path in folder.glob("*/*/trajectory.jsonl")]
        shown = [json.loads(line)["observation"] for text in texts for line in text.splitlines()]
        return [text.split()[1] for text in shown if text.startswith("stamp")]


@pytest.fixture
def project(
    pytester: pytest.Pytester,
    image: str,
    tmp_path_factory: pytest.TempPathFactory,
    monkeypatch: pytest.MonkeyPatch,
) -> Project:
    cache = tmp_path_factory.mktemp("cache")
    monkeypatch.setenv("XDG_CACHE_HOME", str(cache))
    pytester.makeini(
        f"[pytest]\npythonpath = .\nsuper_image = {image}\nsuper_sandbox = docker\nfilterwarnings = error\n"
    )
    pytester.makeconftest("import pytest_super.snapshots.prefix as it\nit.WORTH_SECONDS = 0.0\n")
    return Project(pytester, cache)


@pytest.mark.slow
def test_a_prefix_is_run_once_for_all_workers_epochs_and_runs(project: Project) -> None:
    project.task()
    stamps = project.stamps("--super-epochs=4", "-n2")
    assert len(stamps) == 4
    assert len(set(stamps)) == 1
    assert set(project.stamps()) == set(stamps)
    (archive,) = project.cache.glob("*.tar")
    archive.write_bytes(b"no archive")
    assert set(project.stamps()).isdisjoint(stamps), "a broken snapshot fails no trial"
    (record,) = records_in(project.cache)
    assert record["useless"]
    assert record["expires"]


def test_no_cache_runs_it_in_every_trial(project: Project) -> None:
    project.task()
    assert len(set(project.stamps("--super-no-cache", "--super-epochs=2"))) == 2
    assert not project.cache.exists()


@pytest.mark.slow
def test_what_a_project_does_to_its_kernels_is_in_no_snapshot(project: Project) -> None:
    fixtures = {
        "kernel": "def super_kernel(super_kernel): return own(super_kernel)",
        "maker": "def super_make_kernel(super_make_kernel): return lambda: own(super_make_kernel())",
        "getter": "def super_agent(super_agent, super_kernel): own(super_kernel); return super_agent",
        "asker": "def super_agent(super_agent, request):"
        " own(request.getfixturevalue('super_kernel')); return super_agent",
    }
    for id, fixture in fixtures.items():
        project.task(id)
        (project.pytester.path / id / "conftest.py").write_text(
            "import pytest\n\ndef own(kernel):\n    kernel.files.write('own', b'1')\n    return kernel\n\n"
            f"@pytest.fixture\n{fixture}\n"
        )
    assert len(set(project.stamps())) == len(fixtures)
    assert not list(project.cache.glob("*.tar"))
