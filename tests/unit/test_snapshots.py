"""Which steps of a prefix a snapshot covers, when it is used, and what its name depends on."""

import time
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

from pytest_super.errors import EngineError
from pytest_super.snapshots.covered_steps import Plan, plan_of
from pytest_super.snapshots.prefix import NotMadeError, Prefix, RestoredPrefix, SavedPrefix, prefix_of
from pytest_super.snapshots.record import (
    SnapshotRecord,
    archive_of,
    read_record,
    replace_snapshot,
    write_record,
)
from pytest_super.tasks.task import PreExecuted, Task

EDIT = {"edit": {"path": "train.py", "before": "a", "after": "b"}}


def plan(*steps: str | dict[str, Any]) -> Plan | None:
    return plan_of(
        [PreExecuted.model_validate({"cell": one} if isinstance(one, str) else one) for one in steps]
    )


@pytest.mark.parametrize(
    "step",
    [
        EDIT,
        "!make data",
        "# What the code needs:\n!pip install a \\\n  b\n\n!make",
        "%pip install foo",
        "%%bash\nfor x in 1 2; do make $x; done",
        "%%writefile run.sh\necho hi",
        {"cell": "from pathlib import Path\nPath('a').write_text('1')", "files": True},
    ],
)
def test_a_step_that_leaves_only_files_is_covered(step: str | dict[str, Any]) -> None:
    found = plan(step, "x = 1")
    assert found is not None
    assert (found.length, found.settings) == (1, "")


@pytest.mark.parametrize(
    "step",
    [
        "open('n', 'w').write('1')",
        "!ls\nx = 1",
        "files = !ls",
        "%%bash --out x\nls",
        "%run train.py",
        "%%capture x\n!ls",
    ],
)
def test_the_first_other_cell_ends_the_snapshot(step: str) -> None:
    assert plan(step, "!ls") is None
    found = plan("!make", step, "!ls")
    assert found is not None
    assert found.length == 1


def test_changes_of_folder_and_environment_are_run_again_in_their_order() -> None:
    found = plan(
        "!git clone https://host/code\n%cd code\n!make", "%env LEVEL=3", "%%bash\n%cd no", "%cd b", "x"
    )
    assert found is not None
    assert (found.length, found.settings) == (4, "%cd code\n%env LEVEL=3\n%cd b")


class Place:
    """A sandbox that can be saved, as far as the choice of a prefix asks."""

    workdir = "/workspace"

    def __init__(self, identity: str = "image") -> None:
        self.capabilities = SimpleNamespace(snapshots=True)
        self.identity = identity
        self.restored: list[Path] = []

    def restore(self, archive: Path) -> None:
        self.restored.append(archive)


def task(*cells: str | dict[str, Any], **fields: Any) -> Task:
    data = {
        "id": "a",
        "set": "masked",
        "category": "data",
        "query": "q",
        "answer": 1,
        "pre_execute": list(cells),
    }
    return Task.model_validate(data | fields)


def choose(task: Task, folder: Path, place: Place | None = None, *, may_make: bool = True) -> Prefix:
    return prefix_of(task, cast("Any", place or Place()), may_make=may_make, folder=folder)


def name(task: Task, folder: Path, place: Place | None = None) -> str:
    prefix = choose(task, folder, place)
    prefix.close()
    assert isinstance(prefix, SavedPrefix)
    return prefix.path.stem


def make(task: Task, folder: Path, record: SnapshotRecord | None = None) -> Path:
    """Make its snapshot; gives the place of the record."""
    prefix = choose(task, folder)
    assert isinstance(prefix, SavedPrefix)
    archive_of(prefix.path).touch()
    write_record(prefix.path, record or SnapshotRecord())
    prefix.close()
    return prefix.path


def test_the_first_trial_makes_the_snapshot_that_the_next_ones_start_from(tmp_path: Path) -> None:
    with pytest.raises(NotMadeError):
        choose(task("!make data"), tmp_path, may_make=False)
    path, place = make(task("!make data"), tmp_path), Place()
    assert isinstance(choose(task("!make data"), tmp_path, place), RestoredPrefix)
    assert place.restored == [archive_of(path)]


def test_a_snapshot_that_has_expired_or_lost_its_files_is_made_again(tmp_path: Path) -> None:
    make(task("!make data"), tmp_path, SnapshotRecord(expires=time.time() - 1))
    assert name(task("!make data"), tmp_path)
    path = make(task("!make data"), tmp_path, SnapshotRecord(expires=time.time() + 1000))
    assert isinstance(choose(task("!make data"), tmp_path), RestoredPrefix)
    archive_of(path).unlink()
    assert name(task("!make data"), tmp_path)
    # One that is not worth it is run by every trial.
    make(task("!make data"), tmp_path, SnapshotRecord(useless="it would spare nothing"))
    assert type(choose(task("!make data"), tmp_path, may_make=False)) is Prefix


def test_nobody_waits_for_ever_for_a_snapshot(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("pytest_super.snapshots.record.LOCK_SECONDS", 0.0)
    maker = choose(task("!make data"), tmp_path)
    assert type(choose(task("!make data"), tmp_path)) is Prefix
    maker.close()
    later = choose(task("!make data"), tmp_path)
    later.close()
    assert isinstance(later, SavedPrefix)


def test_what_fails_about_a_snapshot_fails_no_trial(tmp_path: Path) -> None:
    class Broken(Place):
        def restore(self, archive: Path) -> None:
            del archive
            raise EngineError("no engine answers")

    make(task("!make data"), tmp_path)
    assert type(choose(task("!make data"), tmp_path, Broken())) is Prefix
    (tmp_path / "file").touch()
    assert type(choose(task("!make data"), tmp_path / "file" / "folder")) is Prefix


def test_files_that_are_not_pinned_are_in_the_name_with_all_that_a_sandbox_gets(tmp_path: Path) -> None:
    code, cache = tmp_path / "code", tmp_path / "cache"
    (code / "deep").mkdir(parents=True)
    script = code / "run.sh"
    script.write_text("echo 1")

    def named(folder: str = "code") -> str:
        one = task("!make data", repository={"path": folder, "provide": True})
        one._path = str(tmp_path / "a.task.yaml")
        return name(one, cache)

    names = [named()]
    script.chmod(0o755)
    names.append(named())
    script.write_text("echo 2")
    names.append(named())
    (code / "link").symlink_to("run.sh")
    names.append(named())
    (code / "empty").mkdir()
    names.append(named())
    code.rename(tmp_path / "code2")
    names.append(named("code2"))
    assert len(set(names)) == len(names)
    (tmp_path / "code2/deep/__pycache__").mkdir()
    (tmp_path / "code2/deep/__pycache__/run.cpython-311.pyc").write_bytes(b"")
    assert named("code2") == names[-1]


def test_a_name_tells_all_apart_that_the_files_depend_on(tmp_path: Path) -> None:
    pinned = {"pypi": "Boruta", "version": "0.3", "sha256": "0" * 64}
    names = [
        name(task("!make data"), tmp_path),
        name(task("!make more"), tmp_path),
        name(task("%cd code", "!make data"), tmp_path),
        name(task({"cell": "!make data", "files": True}), tmp_path),
        name(task("!make data"), tmp_path, Place("another image")),
        name(task("!make data", repository={**pinned, "provide": True}), tmp_path),
        name(task("!make data", repository={**pinned, "provide": True, "version": "0.4"}), tmp_path),
    ]
    assert len(set(names)) == len(names)
    # What the files do not depend on is not in the name.
    others = [task("!make data", "x = 1"), task("!make data", id="b", query="another", answer=2)]
    assert {name(one, tmp_path) for one in others} == {names[0]}


def test_a_record_that_cannot_be_read_counts_as_none(tmp_path: Path) -> None:
    for text in ("", "{", "[]", '{"steps": 3}', '{"steps": [], "colour": 1}'):
        (tmp_path / "a.json").write_text(text)
        assert read_record(tmp_path / "a.json") is None


@pytest.mark.parametrize("owned", ["", "../other.json", "b.json"])
def test_an_owner_has_one_snapshot_whatever_its_file_says(tmp_path: Path, owned: str) -> None:
    (tmp_path / "me.owner").write_text(owned)
    (tmp_path / "b.tar").touch()
    replace_snapshot(tmp_path / "a.json", "me")
    assert (tmp_path / "me.owner").read_text() == "a.json"
    assert (tmp_path / "b.tar").exists() is (owned != "b.json")
