"""A run that is compared with a baseline counts together with earlier runs of the same subject."""

import json
import shlex
import xml.etree.ElementTree as ET
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

# pytester forgets what a run has imported, and numpy refuses to be imported twice.
from pytest_super.store.run_folder import RunFolder, create_run, stored_results
from tests.integration.conftest import Folder, Project, read_lines
from tests.integration.test_baseline import AGENT, TASKS, run, update
from tests.integration.test_resume import project as real_project
from tests.integration.test_resume import run as run_for_real
from tests.stored import append_line

GATE = ("--super-baseline=baseline.json", "--super-max-regression=20", "--super-epochs=3")
FIRST = "20200101-000000-0000"
SAME_SUBJECT = "of the same subject"


@pytest.fixture
def project(pytester: pytest.Pytester) -> Project:
    """With a baseline of ten epochs, of which one was run."""
    made = Project(pytester, skilled=AGENT)
    for id in TASKS:
        made.add_task(id)
    run(made, TASKS[:8])
    update(made)
    return made


def verdict(project: Project) -> dict[str, Any]:
    data: dict[str, Any] = json.loads((project.latest / "verdict.json").read_text())
    return data


def copy_of(project: Project, folder: Path, name: str = FIRST) -> RunFolder:
    """The latest run as an earlier one that has stored nothing but its facts."""
    facts = json.loads((project.latest / "run.json").read_text())
    return create_run(folder, {**facts, "id": name}, name)


def test_a_red_job_that_is_run_again_stays_red(project: Project) -> None:
    red = run(project, TASKS[:1], *GATE)
    assert red.ret == pytest.ExitCode.TESTS_FAILED
    assert verdict(project)["look"] == 1
    first = project.latest.resolve().name
    again = run(project, TASKS[:8], *GATE, "--junitxml=out.xml")
    assert again.ret == pytest.ExitCode.TESTS_FAILED
    assert again.outlines[-1].startswith("REGRESSED  expert ")
    again.stdout.fnmatch_lines(
        [
            "baseline *; candidate * (6 epochs)",
            f"with 36 trials of run {first}, {SAME_SUBJECT}",
            "look 2 at this subject, with 1.25 % risk of *",
        ]
    )
    assert (verdict(project)["look"], verdict(project)["pooled"]) == (2, {first: 36})
    told = {one.get("name"): one.get("value") for one in ET.parse(project.path / "out.xml").iter("property")}
    assert (told["super.look"], told["super.pooled"]) == ("2", f"{first}: 36")


@pytest.mark.long
def test_a_changed_agent_begins_anew(project: Project) -> None:
    run(project, TASKS[:1], *GATE)
    project.write("skilled.py", f"{AGENT}\n# better\n")
    result = run(project, TASKS[:8], *GATE)
    assert result.ret == pytest.ExitCode.OK
    result.stdout.no_fnmatch_line(f"*{SAME_SUBJECT}*")
    assert (verdict(project)["look"], verdict(project)["pooled"]) == (1, {})


@pytest.mark.long
def test_another_baseline_begins_anew(project: Project) -> None:
    run(project, TASKS[:1], *GATE)
    run(project, TASKS[:8], "--super-epochs=3")
    update(project)
    result = run(project, TASKS[:8], *GATE)
    assert result.ret == pytest.ExitCode.OK
    # Neither those of the gate against the old baseline, nor those that the new one is made of.
    result.stdout.no_fnmatch_line(f"*{SAME_SUBJECT}*")


@pytest.mark.long
def test_an_agent_whose_change_cannot_be_noticed_begins_anew(project: Project) -> None:
    project.add_to_conftest(
        "@pytest.fixture\ndef super_agent():\n    from skilled import Skilled\n    return Skilled()\n"
    )
    run(project, TASKS[:1], *GATE)
    result = run(project, TASKS[:8], *GATE)
    assert result.ret == pytest.ExitCode.OK
    result.stdout.no_fnmatch_line(f"*{SAME_SUBJECT}*")


@pytest.mark.long
def test_only_tasks_under_equal_conditions_count_together(project: Project) -> None:
    run(project, TASKS[:8], *GATE)
    first = project.latest.resolve().name
    project.add_task("t1", query="do something else")
    result = run(project, TASKS[:8], *GATE)
    result.stdout.fnmatch_lines([f"with 33 trials of run {first}, {SAME_SUBJECT}", "look 2 *"])


@pytest.mark.long
def test_a_run_that_was_killed_counts_but_was_no_look(project: Project) -> None:
    run(project, TASKS[:1], *GATE)
    first = project.latest.resolve().name
    (project.latest / "verdict.json").unlink()
    result = run(project, TASKS[:8], *GATE)
    assert result.ret == pytest.ExitCode.TESTS_FAILED
    result.stdout.fnmatch_lines([f"with 36 trials of run {first}, {SAME_SUBJECT}"])
    assert verdict(project)["look"] == 1


@pytest.mark.long
def test_a_run_with_too_many_errors_does_not_count(project: Project) -> None:
    run(project, TASKS[:8], *GATE)
    folder, trials = copy_of(project, project.path / "other"), stored_results(project.latest)
    for one in trials:
        folder.record(replace(one, error="the engine died") if one.id == "t0" else one)
    result = run(project, TASKS[:8], *GATE, "--super-dir=other")
    result.stdout.no_fnmatch_line(f"*{SAME_SUBJECT}*")


@pytest.mark.long
def test_the_facts_of_a_run_decide_whether_its_trials_count(project: Project) -> None:
    run(project, TASKS[:8], *GATE)
    first = project.latest.resolve()
    for name, subject in (("same", {}), ("other", {"agent": "another"})):
        folder = copy_of(project, project.path / name)
        for one in stored_results(first):
            folder.record(one)
        facts = json.loads((folder.path / "run.json").read_text())
        changed = {**facts, "subject": {**facts["subject"], **subject}}
        (folder.path / "run.json").write_text(json.dumps(changed))
        result = run(project, TASKS[:8], *GATE, f"--super-dir={name}")
        assert result.ret == pytest.ExitCode.OK
        assert any(SAME_SUBJECT in line for line in result.outlines) == (not subject)


@pytest.mark.long
def test_a_damaged_earlier_run_does_not_count(project: Project) -> None:
    run(project, TASKS[:8], *GATE)
    for number, line in enumerate(("{", "[]", '{"id": 5}', "[" * 100_000)):
        other = project.path / f"other{number}"
        folder = copy_of(project, other)
        append_line(folder.path / "results.jsonl", f"{line}\n")
        append_line(folder.path / "verdict.json", line)
        append_line(copy_of(project, other, "2019").path / "run.json", line)
        result = run(project, TASKS[:8], *GATE, f"--super-dir={other.name}")
        assert result.ret == pytest.ExitCode.OK
        result.stdout.no_fnmatch_line(f"*{SAME_SUBJECT}*")


real = real_project


@pytest.mark.long
def test_a_trial_that_was_taken_over_counts_once_and_its_look_counts(real: Folder) -> None:
    ran, _ = run_for_real(real, "--super-epochs=2")
    assert ran.returncode == 1
    latest = real.latest
    assert real.command("baseline", "update", str(latest)).returncode == 0
    gate = ("--super-baseline=baseline.json", "--super-max-regression=50")
    run_for_real(real, "--super-epochs=2", *gate)
    ran, tasks = run_for_real(real, "--super-epochs=3", *gate, "--super-resume=latest")
    assert tasks == "a b"
    assert "(3 epochs)" in ran.stdout
    found = json.loads((latest / "verdict.json").read_text())
    assert (found["look"], found["pooled"]) == (2, {})
    ran, tasks = run_for_real(real, "--super-epochs=1", *gate)
    # The four of the second run once, and the two that the third has added.
    assert sum(json.loads((latest / "verdict.json").read_text())["pooled"].values()) == 6
    assert "(4 epochs)" in ran.stdout
    assert len(read_lines(latest / "results.jsonl")) == 2


@pytest.mark.long
def test_a_run_that_cannot_tell_prints_the_command_that_goes_on(project: Project) -> None:
    options = (
        "--super-baseline=baseline.json",
        "--super-max-regression=5",
        "-k",
        "not t11",
        "--super-epochs",
    )
    first = run(project, TASKS[:8], *options, "2")
    assert first.ret == pytest.ExitCode.OK
    assert first.outlines[-1].startswith("CANNOT TELL  expert ")
    start = "to find out, run more epochs, which count together with these: "
    (command,) = (line.removeprefix(start) for line in first.outlines if line.startswith(start))
    program, *arguments = shlex.split(command)
    assert program == "pytest"
    assert [one for one in arguments if one.startswith("--super-epochs")] == [arguments[0]]
    assert "not t11" in arguments
    again = project.pytester.runpytest(*arguments)
    assert "  expert " in again.outlines[-1]
    assert verdict(project)["look"] == 2
