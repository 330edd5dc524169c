"""The gate against a baseline, and the subcommands that compare runs."""

import json
import os
import shutil
import xml.etree.ElementTree as ET
from fnmatch import fnmatch
from pathlib import Path

import pytest

from tests.integration.conftest import Project

# Solves the tasks that are named in a file, one of which it may have changed since the last run.
AGENT = """
from pathlib import Path

class Skilled:
    def run(self, trial):
        solved = Path(__file__).with_name("solved.txt").read_text().split()
        trial.submit(42 if trial.task.id in solved else 0)
"""
TASKS = [f"t{number}" for number in range(12)]


@pytest.fixture
def project(pytester: pytest.Pytester) -> Project:
    made = Project(pytester, skilled=AGENT)
    for id in TASKS:
        made.add_task(id)
    return made


def run(project: Project, solved: list[str], *options: str) -> pytest.RunResult:
    project.write("solved.txt", " ".join(solved))
    return project.run(*options, agent="skilled:Skilled")


@pytest.fixture(scope="module")
def kept(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder for the run of the first test's baseline, and for the baseline."""
    return tmp_path_factory.mktemp("kept") / "project"


@pytest.fixture
def baseline(project: Project, kept: Path) -> Path:
    if not kept.exists():
        run(project, TASKS[:8])
        assert "12 tasks, 1 epoch" in update(project)
        shutil.copytree(project.path, kept, symlinks=True)
    else:
        shutil.copytree(kept, project.path, symlinks=True, dirs_exist_ok=True)
    return project.path / "baseline.json"


def update(project: Project) -> str:
    """Make a baseline of ten epochs, of which the latest run was one. What the command says."""
    ran = project.command("baseline", "update", ".super/runs/latest")
    assert ran.returncode == 0, ran.stderr
    path = project.path / "baseline.json"
    data = json.loads(path.read_text())
    for task in data["tasks"].values():
        task["values"] *= 10
        task["stops"] = {reason: count * 10 for reason, count in task["stops"].items()}
    path.write_text(json.dumps(data, indent=1))
    return ran.stdout


GATE = ("--super-baseline=baseline.json", "--super-max-regression=20", "--super-epochs=2")


def test_a_run_passes_only_if_it_also_passes_against_the_anchor(project: Project, baseline: Path) -> None:
    anchor = "--super-anchor=release.json"
    baseline.rename(project.path / "release.json")
    run(project, TASKS[:3])
    update(project)
    # As good as the refreshed baseline, which had sunk.
    result = run(project, TASKS[:3], *GATE, anchor)
    assert result.ret == pytest.ExitCode.TESTS_FAILED
    assert fnmatch(result.outlines[-2], "PASS  expert +0.0 points *, limit -20")
    assert fnmatch(result.outlines[-1], "REGRESSED  expert -42 points *, limit -20 (anchor release.json)")
    stored = json.loads((project.latest / "verdict.json").read_text())
    verdicts = [stored[name]["expert"]["verdict"] for name in ("regression", "anchor")]
    assert (verdicts, stored["verdict"]) == (["pass", "regressed"], "failed")
    # In another folder it does not count together with the run before.
    result = run(project, TASKS[:8], *GATE, anchor, "--super-dir=apart")
    assert result.ret == pytest.ExitCode.OK
    assert fnmatch(result.outlines[-2], "PASS  expert +42 points *, limit -20")
    assert fnmatch(result.outlines[-1], "PASS  expert +0.0 points *, limit -20 (anchor release.json)")


def test_an_anchor_that_is_none_is_refused_before_the_first_trial(project: Project, baseline: Path) -> None:
    text = baseline.read_text()
    (project.path / "tasks.json").write_text(text.replace('\n  "t', '\n  "other'))
    (project.path / "metric.json").write_text(text.replace('"scoring": "', '"scoring": "older '))
    chance = "--super-pass-chance*must be a number more than 0 and less than 1"
    for options, message in (
        (
            [*GATE, "--super-anchor=tasks.json"],
            "only 0 of 12 tasks can be compared with tasks.json, so nothing has run",
        ),
        ([*GATE, "--super-anchor=absent.json"], "--super-anchor*absent.json"),
        (["--super-anchor=baseline.json"], "--super-anchor is compared with beside --super-baseline"),
        ([*GATE, "--super-pass-chance=1"], chance),
        ([*GATE, "--super-pass-chance=0"], chance),
    ):
        result = run(project, TASKS[:8], *options)
        assert result.ret == pytest.ExitCode.USAGE_ERROR
        assert fnmatch("\n".join([*result.outlines, *result.errlines]), f"*{message}*")
    # In kernels of the project's own, that is known only at the end.
    result = run(project, TASKS[:8], *GATE, "--super-anchor=metric.json")
    assert result.ret == pytest.ExitCode.TESTS_FAILED
    assert fnmatch(
        result.outlines[-1], "gate: FAILED, nothing can be compared: *metric.json*scored otherwise*"
    )


@pytest.mark.slow
@pytest.mark.usefixtures("baseline")
@pytest.mark.parametrize(
    ("solved", "word", "regression", "points"),
    [(8, "passed", "pass", "0.0"), (3, "failed", "regressed", "-41.67")],
)
def test_the_verdict_is_stored_listed_and_in_the_xml(
    project: Project, monkeypatch: pytest.MonkeyPatch, solved: int, word: str, regression: str, points: str
) -> None:
    run(project, TASKS[:solved], *GATE, "--super-fail-under=0.1", "--junitxml=out.xml")
    stored = json.loads((project.latest / "verdict.json").read_text())
    assert stored["verdict"] == word
    assert [line.split(" ", 2)[:2] for line in stored["gates"]] == [
        ["gate:", "passed,"],
        ["REGRESSED" if word == "failed" else "PASS", ""],
    ]
    found = stored["regression"]["expert"]
    assert (found["verdict"], str(found["points"])) == (regression, points)
    assert found["low"] <= found["points"] <= found["high"]
    told = {one.get("name"): one.get("value") for one in ET.parse(project.path / "out.xml").iter("property")}
    assert told["super.verdict"] == word
    assert told["super.regression.expert"] == regression
    assert told["super.regression.expert.points"] == points
    monkeypatch.setenv("COLUMNS", "200")
    _, newest, older = project.command("runs").stdout.splitlines()
    share = f"{solved / 12:.3f}"
    assert newest.split()[3:] == ["24", share, share, "0", "-", word]
    assert older.split()[-1] == "-"


@pytest.mark.usefixtures("baseline")
def test_a_worse_agent_fails_and_its_tasks_are_named(project: Project) -> None:
    result = run(project, TASKS[:3], *GATE)
    assert result.ret == pytest.ExitCode.TESTS_FAILED
    result.stdout.fnmatch_lines(["lost  t3  1.00 -> 0.00", "lost  t7  1.00 -> 0.00"])
    assert result.outlines[-1].startswith("REGRESSED  expert -42 points (")


@pytest.mark.slow
@pytest.mark.usefixtures("baseline")
def test_a_job_of_github_actions_gets_the_flips_first(
    project: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("GITHUB_STEP_SUMMARY", str(project.path / "summary.md"))
    run(project, [*TASKS[:6], TASKS[9]], *GATE, "--super-max-regression=40")
    text = (project.path / "summary.md").read_text()
    assert text.startswith("### Agent: pass\n\n- PASS  expert -8.3 points (")
    rows = [line for line in text.splitlines() if line.startswith("| ")]
    assert rows == [
        "|  | task | baseline | candidate |",
        "| lost | t6 | 1.00 | 0.00 |",
        "| lost | t7 | 1.00 | 0.00 |",
        "| won | t9 | 0.00 | 1.00 |",
        *rows[4:],
    ]
    assert rows[-1].startswith("| expert | 12 | 0.667 | 0.583 | -8.3 |")


@pytest.mark.parametrize(("option", "status"), [("pass", 0), ("fail", 1)])
@pytest.mark.usefixtures("baseline")
def test_a_run_that_cannot_tell_does_what_the_option_says(project: Project, option: str, status: int) -> None:
    few = ("--super-baseline=baseline.json", "--super-max-regression=5", f"--super-cannot-tell={option}")
    result = run(project, TASKS[:8], *few)
    assert result.ret == status
    # Before the first trial, and again at the end.
    too_few = [line for line in result.outlines if line.startswith("TOO FEW EPOCHS  expert: ")]
    assert len(too_few) == 2
    assert fnmatch(too_few[1], "* a drop of * points can be found, not one of 5; * epochs would be enough")
    goes_on = "CANNOT TELL does not fail the run: see --super-cannot-tell"
    assert (goes_on in result.outlines) == (option == "pass")
    assert result.outlines[-1].startswith("CANNOT TELL  expert +0.0 points (")


@pytest.mark.slow
@pytest.mark.usefixtures("baseline")
def test_changed_tasks_are_left_out_by_name(project: Project) -> None:
    project.add_task("t1", query="do something else")
    project.add_task("new")
    result = run(project, TASKS[:8], *GATE)
    result.stdout.fnmatch_lines([
        "left out, only in 2*: new",
        "left out, other conditions (query): t1",
    ])  # fmt: skip


@pytest.mark.slow
@pytest.mark.usefixtures("baseline")
def test_workers_tell_the_same(project: Project) -> None:
    alone = run(project, TASKS[:3], *GATE)
    # Elsewhere, so that they do not count together.
    both = run(project, TASKS[:3], *GATE, "-n2", "--super-dir=.others")
    told = ("expert", "lost", "REGRESSED")
    lines = [line for line in alone.outlines if line.startswith(told)]
    of_both = [line for line in both.outlines if line.startswith(told)]
    ids = project.latest.resolve().name, (project.path / ".others/runs/latest").resolve().name
    assert lines == [line.replace(ids[1], ids[0]) for line in of_both]
    assert len(lines) > 5


@pytest.mark.slow
def test_a_baseline_can_be_a_runs_folder(project: Project) -> None:
    run(project, TASKS[:8], "--super-epochs=3")
    folder = (project.path / ".super/runs/latest").resolve()
    result = run(project, TASKS[:1], f"--super-baseline={folder}", "--super-epochs=3")
    assert result.ret == pytest.ExitCode.TESTS_FAILED
    assert result.outlines[-1].startswith("REGRESSED  expert ")
    compared = project.command("compare", str(folder), ".super/runs/latest")
    assert compared.returncode == 1
    assert compared.stdout.splitlines()[-1] == result.outlines[-1]


@pytest.mark.slow
def test_a_check_says_what_a_later_run_can_find(project: Project, baseline: Path) -> None:
    enough = project.command("baseline", "check", "--epochs=10", "--max-regression=20")
    assert (enough.returncode, enough.stderr) == (0, "")
    too_few = project.command("baseline", "check", "--max-regression=2")
    assert too_few.returncode == 1
    assert "points can be found, not one of 2" in too_few.stdout
    shown = project.command("baseline", "show", "--file", str(baseline))
    assert "t11   expert  0.000      10" in shown.stdout


@pytest.mark.slow
def test_old_runs_are_removed_but_not_that_of_the_baseline(
    project: Project, baseline: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "200")
    for _ in range(3):
        run(project, TASKS[:1])
    folder = project.path / ".super/runs"
    kept, *others = sorted(path.name for path in folder.iterdir() if not path.is_symlink())
    assert json.loads(baseline.read_text())["run"] == kept
    recent = project.command("runs", "--prune=1")
    assert "removed" not in recent.stdout
    for path in [one for one in folder.rglob("*") if not one.is_symlink()]:
        os.utime(path, (0, 0))
    pruned = project.command("runs", "--prune=1")
    assert (pruned.returncode, pruned.stderr) == (0, "")
    assert pruned.stdout.count("removed") == 2
    assert [line.split()[0] for line in pruned.stdout.splitlines()[-2:]] == [others[-1], kept]
    figures = ["12", "0.667", "0.667", "0", "-", "-"]
    assert pruned.stdout.splitlines()[-1].split()[1:] == ["skilled:Skilled", "-", *figures]


@pytest.mark.usefixtures("baseline")
def test_an_unchanged_agent_passes_although_it_misses_tasks_and_subjects_are_counted(
    project: Project,
) -> None:
    result = run(project, TASKS[:8], *GATE)
    assert result.ret == pytest.ExitCode.OK
    result.stdout.fnmatch_lines([
        "expert: 2 epochs against baseline.json: 80 % chance to see a drop of * points, * % to pass *",
        "set     tasks  baseline  candidate  points*",
        "expert     12     0.667      0.667    +0.0*",
    ])  # fmt: skip
    assert fnmatch(result.outlines[-1], "PASS  expert +0.0 points (-* to +*), limit -20")
    updated = project.command("baseline", "update", ".super/runs/latest")
    assert "warning: this run was compared with baseline.json: " in updated.stdout
    project.write("skilled.py", f"{AGENT}# changed\n")
    assert "that this folder has compared" not in run(project, TASKS[:8], *GATE).stdout.str()
    project.write("skilled.py", f"{AGENT}# changed again\n")
    result = run(project, TASKS[:8], *GATE)
    result.stdout.fnmatch_lines(["subject 2 that this folder has compared with the baseline: *"])


def test_a_refreshed_baseline_replaces_a_better_one(project: Project, baseline: Path) -> None:
    before = json.loads(baseline.read_text())["run"]
    run(project, TASKS[:2])
    told = project.command("baseline", "update", ".super/runs/latest").stdout
    assert f"baseline.json had {before}\n" in told
    assert "retrieval" not in told
    assert json.loads(baseline.read_text())["tasks"]["t5"]["values"] == [0.0]


def test_a_missing_or_damaged_baseline_is_one_message(project: Project, baseline: Path) -> None:
    before = os.listdir(project.path / ".super/runs")
    result = run(project, [], "--super-baseline=none.json")
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stderr.fnmatch_lines(["ERROR: --super-baseline=none.json: there is no baseline none.json: make *"])
    data = json.loads(baseline.read_text())
    next(iter(data["tasks"].values()))["values"] = [10**400]
    for text in (json.dumps(data), "", "[" * 100_000, '{"format": 2, "tasks": {}, "trials": Infinity}'):
        baseline.write_text(text)
        result = run(project, [], f"--super-baseline={baseline}")
        assert result.ret == pytest.ExitCode.USAGE_ERROR
        result.stderr.fnmatch_lines(["ERROR: --super-baseline: *is no baseline*"])
    assert os.listdir(project.path / ".super/runs") == before


def test_runs_are_added_over_time_each_once(project: Project, baseline: Path) -> None:
    run(project, TASKS[:8], "--super-epochs=2")
    first = json.loads(baseline.read_text())["run"]
    project.add_task("t1", query="do something else")
    run(project, TASKS[:2], "--super-epochs=3")
    added = project.command("baseline", "update", "--add", ".super/runs/latest")
    assert (added.returncode, added.stderr) == (0, "")
    assert "not added, other conditions (query): t1" in added.stdout
    data = json.loads(baseline.read_text())
    assert list(data["runs"]) == [first, project.latest.resolve().name]
    assert (data["tasks"]["t3"]["values"], data["tasks"]["t3"]["of_runs"]) == (
        [1.0] * 10 + [0.0] * 3,
        [10, 3],
    )
    assert (len(data["tasks"]["t1"]["values"]), data["run"]) == (10, first)
    before = baseline.read_bytes()
    for id in data["runs"]:
        again = project.command("baseline", "update", "--add", f".super/runs/{id}")
        assert again.returncode == 1
        assert f"all trials of {id} are in baseline.json already: nothing is added" in again.stderr
    assert baseline.read_bytes() == before


def test_a_run_of_another_agent_is_not_added(project: Project, baseline: Path) -> None:
    project.write("skilled.py", f"{AGENT}\n# other\n")
    run(project, TASKS[:8])
    before = baseline.read_bytes()
    refused = project.command("baseline", "update", "--add", ".super/runs/latest")
    assert refused.returncode == 1
    assert "tries something else than baseline.json: its contents differ" in refused.stderr
    assert len(refused.stderr.splitlines()) == 1
    assert baseline.read_bytes() == before


def agent_that(does: str, *tasks: str) -> str:
    """The agent, which does something else first in some of the tasks."""
    first = f"if trial.task.id in {tasks}:\n            {does}\n        solved"
    return AGENT.replace("solved", first, 1)


@pytest.mark.slow
@pytest.mark.usefixtures("baseline")
def test_a_run_with_errors_prints_no_verdict_on_a_set(project: Project) -> None:
    project.write("skilled.py", agent_that("trial.execute('fail_engine()')", "t0"))
    result = run(project, TASKS[:8], *GATE, "--junitxml=out.xml")
    assert result.ret == pytest.ExitCode.TESTS_FAILED
    result.stdout.no_fnmatch_line("PASS  expert*")
    resumed = f": pytest --super-resume={project.latest.resolve().name} "
    result.stdout.fnmatch_lines([f"errors fail the run, *{resumed}*"])
    assert result.outlines[-1].startswith("CANNOT TELL  2 of 24 trials of ")
    assert json.loads((project.latest / "verdict.json").read_text())["regression"] == {}
    told = [one.get("name") for one in ET.parse(project.path / "out.xml").iter("property")]
    assert "super.regression.expert" not in told


@pytest.mark.usefixtures("baseline")
def test_an_agent_that_raises_is_named_beside_the_verdict(project: Project) -> None:
    project.write("skilled.py", agent_that("raise ValueError", "t0", "t1"))
    result = run(project, TASKS[:8], *GATE)
    result.stdout.fnmatch_lines([
        "the baseline itself is uncertain by * points in expert (standard error, *), and 0 days old",
        "trials end differently from the baseline's: agent_error 0 % -> 17 %, submitted 100 % -> 83 %; *",
    ])  # fmt: skip
