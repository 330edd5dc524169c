"""Prefixes that are run once: the same files, the same state, the same scores as without."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from pathlib import Path


pytestmark = pytest.mark.docker

# Long enough to be worth a snapshot, and different each time that it is run.
STAMP = "!sleep 1.2; cat /proc/sys/kernel/random/uuid > stamp"
SHOW = "print('stamp', open('stamp').read())"


class Project:
    """Task files in a folder, with a cache of their own."""

    def __init__(self, pytester: pytest.Pytester, cache: Path) -> None:
        self.pytester = pytester
        self.cache = cache

    def task(self, *prefix: str, check: str = "1", **fields: Any) -> None:
        cells = [SHOW, f"import os\n42 * ({check})"]
        data = {"id": "one", "set": "masked", "category": "data", "query": "q", "answer": 42}
        whole = data | {"pre_execute": list(prefix), "solution": {"cells": cells}} | fields
        (self.pytester.path / f"{whole['id']}.task.yaml").write_text(json.dumps(whole))

    def run(self, *options: str) -> pytest.RunResult:
        return self.pytester.runpytest_subprocess("--super-agent=gold", ".", *options)

    def stamps(self, *options: str) -> list[str]:
        """Those that the trials of a run saw; all of them have to be solved."""
        result = self.run(*options)
        assert result.ret == 0, result.stdout.str()
        folder = self.pytester.path / ".super/runs/latest/trials"
        texts = [path.read_text() for path in folder.glob("*/*/trajectory.jsonl")]
        steps = [json.loads(line) for text in texts for line in text.splitlines()]
        return [step["observation"].split()[1] for step in steps if step["action"]["content"] == SHOW]

    @property
    def records(self) -> list[dict[str, Any]]:
        return [json.loads(path.read_text()) for path in self.cache.glob("pytest-super/snapshots/*.json")]

    @property
    def archives(self) -> list[Path]:
        return list(self.cache.glob("pytest-super/snapshots/*.tar"))


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
    return Project(pytester, cache)


def test_a_prefix_is_run_once_for_all_epochs_and_runs(project: Project) -> None:
    project.task(STAMP)
    stamps = project.stamps("--super-epochs=3") + project.stamps()
    assert len(stamps) == 4
    assert len(set(stamps)) == 1


def test_workers_wait_for_the_one_that_makes_the_snapshot(project: Project) -> None:
    project.task(STAMP)
    assert len(set(project.stamps("--super-epochs=4", "-n2"))) == 1


def test_no_cache_runs_it_in_every_trial(project: Project) -> None:
    project.task(STAMP)
    before = project.stamps()
    after = project.stamps("--super-no-cache", "--super-epochs=2")
    assert len({*before, *after}) == 3
    assert len(project.records) == 1


def test_a_kernel_from_a_snapshot_is_in_the_state_that_the_prefix_leaves(project: Project) -> None:
    project.task(
        "import json\nfactor = 2",
        "!mkdir deep",
        "%env LEVEL=3",
        STAMP.replace("> stamp", "> deep/stamp; printf $LEVEL > deep/level"),
        "%cd deep",
        "!cat ../deep/level",
        check="os.getcwd() == '/workspace/deep' and factor == 2 "
        "and open('level').read() == os.environ['LEVEL'] == '3'",
    )
    assert len(set(project.stamps("--super-epochs=2"))) == 1


def test_the_steps_of_the_prefix_are_told_as_they_went(project: Project) -> None:
    project.task("k = 1", STAMP, "print('seen', k)", "!cat stamp")
    project.stamps("--super-epochs=2")
    folder = project.pytester.path / ".super/runs/latest/trials"
    told = [
        [
            (step["number"], step["origin"], step["action"], step["outcome"], step["observation"])
            for step in map(json.loads, path.read_text().splitlines())
            if step["origin"] == "pre_execute"
        ]
        for path in folder.glob("*/*/trajectory.jsonl")
    ]
    assert len(told) == 2
    assert told[0] == told[1]
    assert [step[0] for step in told[0]] == [1, 2, 3, 4]


def test_what_stands_behind_the_snapshot_is_run_in_every_trial(project: Project) -> None:
    project.task(
        STAMP, "open('more', 'w').write('1')", "!echo 2 >> more", check="open('more').read() == '12\\n'"
    )
    assert len(set(project.stamps("--super-epochs=2"))) == 1


def test_a_prefix_that_leaves_a_process_is_run_in_every_trial(project: Project) -> None:
    start = (
        "from subprocess import Popen; Popen(['sleep', '600'], start_new_session=True, stdout=-3, stderr=-3)"
    )
    project.task(STAMP, f'!python3 -c "{start}"')
    assert len(set(project.stamps("--super-epochs=2"))) == 2
    assert "processes" in project.records[0]["useless"]


def test_a_snapshot_that_gives_another_kernel_is_not_used(project: Project) -> None:
    # What a running kernel does not see of an installation in place, one that starts after it would.
    install = (
        "import site, pathlib; pathlib.Path(site.getsitepackages()[0], 'x.pth').write_text('/workspace')"
    )
    project.task(f'{STAMP}; python3 -c "{install}"', check="'/workspace' not in __import__('sys').path")
    assert len(set(project.stamps("--super-epochs=3"))) == 3
    assert "path" in project.records[0]["useless"]


@pytest.mark.parametrize(
    "fixture",
    [
        pytest.param("def super_kernel(super_kernel): return own(super_kernel)", id="its own kernel"),
        pytest.param(
            "def super_make_kernel(super_make_kernel): return lambda: own(super_make_kernel())",
            id="its own way to make one",
        ),
        pytest.param(
            "def super_agent(super_agent, super_kernel): own(super_kernel); return super_agent",
            id="a fixture that gets it",
        ),
        pytest.param(
            "def super_agent(super_agent, request):"
            " own(request.getfixturevalue('super_kernel')); return super_agent",
            id="a fixture that asks for it",
        ),
    ],
)
def test_what_a_project_does_to_its_kernels_is_in_no_snapshot(project: Project, fixture: str) -> None:
    project.pytester.makeconftest(
        f"""
import pytest

def own(kernel):
    kernel.write_file("own", b"1")
    return kernel

@pytest.fixture
{fixture}
"""
    )
    project.task(STAMP)
    assert len(set(project.stamps("--super-epochs=2"))) == 2
    assert project.archives == []


def test_pruned_snapshots_are_made_again(project: Project) -> None:
    project.task(STAMP)
    first = project.stamps()
    result = project.pytester.run("pytest-super", "prune")
    assert result.ret == 0
    result.stdout.fnmatch_lines(["removed 1 snapshots"])
    assert not project.archives
    assert not project.records
    assert project.stamps() != first


@pytest.mark.parametrize("counts", [True, False])
def test_a_snapshot_takes_the_place_of_the_one_before_of_its_task(project: Project, counts: bool) -> None:
    project.task(STAMP)
    project.stamps()
    (old,) = project.archives
    if not counts:
        old.with_suffix(".json").write_text("no record")
    project.task(STAMP + " # again")
    project.stamps()
    (new,) = project.archives
    assert new != old


def test_a_snapshot_holds_no_settings_of_this_machine(project: Project) -> None:
    settings = project.pytester.path / "pip.conf"
    settings.write_text("[global]\nindex-url = https://user:secret@host/simple\n")
    project.task(STAMP, check="'secret' in open('/etc/pytest-super/pip.conf').read()")
    assert len(set(project.stamps("--super-epochs=2", f"--super-pip-config={settings}"))) == 1
    (archive,) = project.archives
    assert b"secret" not in archive.read_bytes()


def test_files_are_as_if_they_had_been_written_in_the_trial(project: Project) -> None:
    project.task(
        f"{STAMP}; mkdir -p deep/er; touch -d '2001-02-03 04:05:06.123456789Z' deep/er/old; "
        "ln -s er deep/link; "
        "echo 1 > deep/a; ln deep/a deep/b; chmod 751 deep/a; rm /etc/debian_version",
        check="(os.rename('deep', 'moved'), os.stat('moved/er/old').st_mtime_ns == 981173106123456789"
        " and os.readlink('moved/link') == 'er' and os.stat('moved/a').st_ino == os.stat('moved/b').st_ino"
        " and os.stat('moved/a').st_mode & 0o777 == 0o751 and not os.path.exists('/etc/debian_version')"
        " and not [name for name in os.listdir('/') if name.startswith('.pytest')])[1]",
    )
    assert len(set(project.stamps("--super-epochs=2"))) == 1


def test_cells_see_of_ipython_what_they_would_have_seen(project: Project) -> None:
    project.task(
        STAMP,
        "21 * 2",
        "!sleep 0.1; exit 3",
        "seen = _exit_code",
        check="(seen, _exit_code, Out[2], len(In), get_ipython().execution_count) == (3, 3, 42, 7, 7)",
    )
    assert len(set(project.stamps("--super-epochs=2"))) == 1


@pytest.mark.parametrize("path", ["/dev/shm/x", "/etc/hosts"])
def test_what_cannot_be_saved_is_made_by_every_trial(project: Project, path: str) -> None:
    check = f"'data.example' in open('{path}').read()"
    project.task(f"{STAMP}; echo 10.0.0.7 data.example >> {path}", check=check)
    assert len(set(project.stamps("--super-epochs=2"))) == 2


def test_a_snapshot_that_cannot_be_saved_fails_no_trial(project: Project) -> None:
    # Nothing to pack it with.
    project.task(f"{STAMP}; rm /bin/tar")
    assert len(set(project.stamps("--super-epochs=2"))) == 2
    (record,) = project.records
    assert "could not be saved" in record["useless"]
    assert record["expires"]


def test_a_snapshot_that_is_broken_fails_no_trial(project: Project) -> None:
    project.task(STAMP)
    first = project.stamps()
    (archive,) = project.archives
    archive.write_bytes(b"no archive")
    assert project.stamps() != first
    (record,) = project.records
    assert record["useless"]
    assert record["expires"]


def test_attempts_at_a_task_share_its_prefix(project: Project) -> None:
    project.pytester.makepyfile(
        agent="""
        class Fickle:
            def run(self, trial):
                if len(trial.all_steps) > 1:
                    trial.submit(42)
        """
    )
    (project.pytester.path / "model.yaml").write_text('["try again"]')
    project.task(STAMP)
    result = project.pytester.runpytest_subprocess(
        "--super-agent=agent:Fickle", "--super-model=scripted:model.yaml", "--super-attempts=2", "."
    )
    result.assert_outcomes(passed=1)


@pytest.mark.parametrize(
    ("then", "is_over"),
    [("!head -c 60M /dev/zero > more; sleep 30", True), ("!chmod +x stamp; sleep 8", False)],
)
def test_the_disk_limit_counts_what_the_prefix_wrote_once(project: Project, then: str, is_over: bool) -> None:
    prefix = "!sleep 1; head -c 60M /dev/zero > stamp"
    project.task(prefix, solution={"cells": [then, "42"]}, sandbox={"disk": "100MB"})
    for _ in range(2):
        result = project.run()
        assert result.parseoutcomes() == ({"failed": 1} if is_over else {"passed": 1})
        (path,) = project.pytester.path.glob(".super/runs/latest/trials/*/*/trajectory.jsonl")
        assert ("disk limit" in path.read_text()) is is_over
