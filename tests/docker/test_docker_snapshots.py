"""Prefixes that are run once: the same files, the same state, the same scores as without."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

from pytest_super.kernel.saving import SNAPSHOT

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from docker import APIClient

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
        cells = [SHOW, f"42 * ({check})"]
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
    def images(self) -> list[str]:
        return [f"{SNAPSHOT}:{path.stem}" for path in self.cache.glob("pytest-super/snapshots/*.json")]


@pytest.fixture
def project(
    pytester: pytest.Pytester,
    image: str,
    engine: APIClient,
    tmp_path_factory: pytest.TempPathFactory,
    monkeypatch: pytest.MonkeyPatch,
) -> Iterator[Project]:
    from docker.errors import APIError

    cache = tmp_path_factory.mktemp("cache")
    monkeypatch.setenv("XDG_CACHE_HOME", str(cache))
    pytester.makeini(f"[pytest]\npythonpath = .\nsuper_image = {image}\nsuper_sandbox = docker\n")
    project = Project(pytester, cache)
    yield project
    for name in project.images:
        try:
            engine.remove_image(name)
        except APIError:
            continue


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
        "import json\nfactor = json.loads('2')",
        "!mkdir deep",
        "%env LEVEL=3",
        STAMP.replace("> stamp", "> deep/stamp; printf $LEVEL > deep/level"),
        "%cd deep",
        "!cat ../deep/level",
        check="__import__('os').getcwd() == '/workspace/deep' and factor == 2 "
        "and open('level').read() == __import__('os').environ['LEVEL'] == '3'",
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


def test_a_kernel_that_a_project_makes_its_own_starts_from_no_snapshot(project: Project) -> None:
    project.pytester.makeconftest(
        """
        import pytest

        @pytest.fixture
        def super_kernel(super_kernel):
            super_kernel.write_file("own", b"1")
            return super_kernel
        """
    )
    project.task(STAMP)
    assert len(set(project.stamps("--super-epochs=2"))) == 2
    assert project.records == []


def test_pruned_snapshots_are_made_again(project: Project, engine: APIClient) -> None:
    project.task(STAMP)
    first = project.stamps()
    (image,) = project.images
    result = project.pytester.run("pytest-super", "image", "prune")
    assert result.ret == 0
    result.stdout.fnmatch_lines(["removed * snapshots"])
    assert engine.images(name=image) == []
    assert project.stamps() != first


def test_a_snapshot_takes_the_place_of_the_one_before_of_its_task(
    project: Project, engine: APIClient
) -> None:
    project.task(STAMP)
    project.stamps()
    (old,) = project.images
    project.task(STAMP + " # again")
    project.stamps()
    assert engine.images(name=old) == []
    assert len(project.images) == 2


def test_a_snapshot_holds_no_settings_of_pip(project: Project, engine: APIClient) -> None:
    settings = project.pytester.path / "pip.conf"
    settings.write_text("[global]\nindex-url = https://user:secret@host/simple\n")
    project.task(STAMP, check="'secret' in open('/etc/pytest-super/pip.conf').read()")
    assert len(set(project.stamps("--super-epochs=2", f"--super-pip-config={settings}"))) == 1
    container = engine.create_container(project.images[0], command="true")["Id"]
    try:
        stream, _ = engine.get_archive(container, "/etc/pytest-super/pip.conf")
        assert b"secret" not in b"".join(stream)
    finally:
        engine.remove_container(container)


def test_the_disk_limit_counts_what_the_prefix_wrote(project: Project) -> None:
    project.task(
        "!sleep 1; head -c 60M /dev/zero > stamp",
        solution={
            "cells": ["print(len(open('stamp').read()))", "!head -c 60M /dev/zero > more; sleep 30", "42"]
        },
        sandbox={"disk": "100MB"},
    )
    for _ in range(2):
        result = project.run()
        result.assert_outcomes(failed=1)
        result.stdout.fnmatch_lines(["*the sandbox was lost*"])
        (path,) = project.pytester.path.glob(".super/runs/latest/trials/*/*/trajectory.jsonl")
        assert "disk limit" in path.read_text()
