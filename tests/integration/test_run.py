"""A run of tasks: outcomes, selection, epochs, the gate, with and without xdist."""

import json
import re
import shutil
import xml.etree.ElementTree as ET
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from pytest_super.gate.baseline_file import write_baseline
from pytest_super.gate.side import Side
from pytest_super.option_values import value_of
from pytest_super.options import OPTIONS, Option
from pytest_super.session.run import RUN
from pytest_super.session.trial import fixtures
from tests.integration.conftest import AGENT, UNSEEN, WITH_AND_WITHOUT_XDIST, Project, read_lines


@pytest.mark.parametrize("workers", [(), ("-n1",), ("-p", "no:xdist")], ids=["", "n1", "none"])
def test_each_kind_of_trial_has_its_outcome_and_numbers(project: Project, workers: tuple[str, ...]) -> None:
    project.add_task("right", landmarks=["half", "done"])
    project.add_task("wrong", landmarks=["half", "done"])
    project.add_task("raises_data", set="masked", category="data")
    project.add_task("silent")
    project.add_task("engine")
    results = {}

    class Reports:
        def pytest_runtest_logreport(self, report: Any) -> None:
            if report.when == "call":
                results[report.super_result["id"]] = report.super_result

    result = project.run(*workers, plugins=[Reports()])
    if workers == ("-n1",):
        # Reports from workers share equal texts.
        assert results["right"]["subject"] is results["wrong"]["subject"]
        assert all(ours is theirs for ours, theirs in zip(results["right"], results["wrong"], strict=True))
    result.assert_outcomes(passed=1, failed=3, errors=1)
    assert result.ret == pytest.ExitCode.TESTS_FAILED
    rows = project.results
    facts = {
        name: (row["metrics"]["accuracy"], row["metrics"]["landmarks"], row["stop_reason"])
        for name, row in rows.items()
    }
    assert facts == {
        "right[1]": (1.0, 1.0, "submitted"),
        "wrong[1]": (0.0, 0.5, "submitted"),
        "raises_data[1]": (0.0, None, "agent_error"),
        "silent[1]": (0.0, None, "returned"),
        "engine[1]": (None, None, "error"),
    }
    result.stdout.re_match_lines(
        [
            r"expert +- +4 +0\.333 +0\.333 +0\.750 +0\.667 +1",
            r"masked +data +1 +0\.000 +0\.000 +- +0\.000 +0",
            r"all +- +5 +0\.250",
            r"error   engine: the engine does not answer",
            r"missed  raises_data: accuracy 0; agent failed: the agent raised "
            r"\(ValueError: agent bug; agent.py:12 in run\); /.*\.ipynb",
        ]
    )
    assert result.stdout.str().count("ValueError: agent bug") == 1
    notebook = json.loads((project.latest / "trials/raises_data/1.0/trajectory.ipynb").read_text())
    assert 'raise ValueError("agent bug")' in notebook["cells"][-1]["source"]


def test_a_trial_is_safe_on_the_disk_before_it_is_reported(
    project: Project, is_synced: Callable[[Path], bool]
) -> None:
    class Reports:
        synced: dict[str, bool]

        @pytest.hookimpl(tryfirst=True)
        def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
            if report.when == "call":
                folder = project.latest / "trials/right/1.0"
                self.synced = {name: is_synced(folder / name) for name in ("trajectory.jsonl", "result.json")}

    project.add_task("right")
    project.run(plugins=[reports := Reports()]).assert_outcomes(passed=1)
    assert reports.synced == {"trajectory.jsonl": True, "result.json": True}
    assert is_synced(project.latest / "results.jsonl")


def test_a_package_may_offer_an_agent_by_name(project: Project) -> None:
    project.add_task("right")
    info = project.path / "offers-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: offers\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text("[pytest_super.agents]\nmine = agent:Agent\n")
    project.run(agent="mine").assert_outcomes(passed=1)


def test_an_unsolved_task_fails_with_a_short_text_and_what_it_did_is_on_disk(project: Project) -> None:
    project.add_task("wrong", landmarks=["half", "done"])
    result = project.run()
    figures = "accuracy 0, landmarks 0.5; wrong value"
    missed = f"missed  wrong: {figures}; the answer is 0, not 42; missed landmark `done`; "
    path = project.latest.resolve() / "trials/wrong/1.0/trajectory.ipynb"
    assert [line for line in result.outlines if line.startswith(missed)] == [f"{missed}{path}"]
    assert path.is_file()
    # Once, whatever else pytest lists.
    assert result.stdout.str().count("the answer is 0") == result.stdout.str().count("trajectory.") == 1
    result.stdout.no_fnmatch_line("*Traceback*")
    result.stdout.no_fnmatch_line("*runner.py*")
    assert sorted(path.name for path in project.latest.iterdir()) == ["results.jsonl", "run.json", "trials"]
    folder = project.latest / "trials/wrong/1.0"
    steps = read_lines(folder / "trajectory.jsonl")
    assert [step["action"]["type"] for step in steps] == ["execute", "submit"]
    notebook = json.loads((folder / "trajectory.ipynb").read_text())
    assert "print('half', 'way')" in [cell["source"] for cell in notebook["cells"]]
    head, blank, *figures = notebook["cells"][0]["source"].split("\n")
    assert (head, blank) == ("# wrong", "")
    told = [tuple(re.split("   *", line.strip(), maxsplit=1)) for line in figures]
    # What its machine and its clock decide is left out.
    varying = ("compute time", "total time", "software", "environment", "started")
    assert [one for one in told if one[0] not in varying] == [
        ("expected", "42"),
        ("submitted", "0"),
        ("set", "expert"),
        ("category", "none"),
        ("epoch", "1"),
        ("solved", "no"),
        ("stopped", "submitted"),
        ("headline", "accuracy"),
        ("score", "accuracy 0, landmarks 0.5, submitted 1"),
        ("cause", "wrong value"),
        ("wrong values", "the answer is 0, not 42"),
        ("landmark", "step 1: half"),
        ("landmark", "missed: done"),
        ("look twice", "echoed landmark, step 1: what matched half is in the source of its cell"),
        ("unseen", UNSEEN),
        ("cost", "not known"),
        ("steps", "2"),
        ("equal steps in a row", "1"),
        ("agent", "agent:Agent"),
        ("model", "none"),
        ("isolated", "no"),
        ("worker", "main"),
        ("tokens", "0 of prompts, 0 of answers"),
    ]


def test_an_argument_that_is_not_utf8_is_recorded(project: Project) -> None:
    project.add_task("right")
    project.run("--deselect=caf\udce9").assert_outcomes(passed=1)
    assert "--deselect=caf\udce9" in json.loads((project.latest / "run.json").read_text())["arguments"]


def test_a_step_tells_how_much_of_a_long_output_was_left_out(project: Project) -> None:
    (project.path / "conftest.py").unlink()
    cell = "print('x' * 300_000, end='')"
    project.add_task(
        "long",
        set="masked",
        category="data",
        pre_execute=[{"cell": cell}],
        solution={"cells": [cell, "print('x'); 42"]},
    )
    project.run(agent="gold").assert_outcomes(passed=1)
    before, own, short = read_lines(project.latest / "trials/long/1.0/trajectory.jsonl")[:3]
    for step in (before, own):
        assert step["omitted_characters"] > 0
        assert step["outputs"][0]["text"].count("x") + step["omitted_characters"] == 300_000
    assert short["omitted_characters"] == 0


def test_a_prefix_waits_for_a_cell_after_its_limit_as_published(project: Project) -> None:
    (project.path / "conftest.py").unlink()
    slow = "import time; print('begun', flush=True); time.sleep(1.5); print('ended')"
    (project.path / "agent.py").write_text(
        "from pytest_super.agents.clipped_history import history_text\n"
        "class Agent:\n"
        "    def run(self, trial):\n"
        "        print(history_text(trial.history))\n"
        "        trial.submit(42)\n"
    )
    prefix = [{"cell": slow}, {"cell": "x = 1"}]
    project.add_task("slow", set="masked", category="data", pre_execute=prefix, limits={"cell": 1})
    project.run("-s", agent="agent:Agent").stdout.fnmatch_lines(
        [
            "*Thought: [[]pre-executed by user]",
            "Thought: [[]continued after timeout]",
            "Action: *continue_wait*",
        ]
    )
    begun, ended, last = read_lines(project.latest / "trials/slow/1.0/trajectory.jsonl")[:3]
    assert [step["outcome"] for step in (begun, ended, last)] == ["timed_out", "ok", "ok"]
    assert "still running" in begun["observation"]
    assert ended["observation"] == "ended\n"
    assert [step["number"] for step in (begun, ended, last)] == [1, 2, 3]


HOSTILE_CELL = """
from IPython.display import publish_display_data
publish_display_data({'text/plain': 5})
kernel, packed = get_ipython().kernel, b'{"data": {"application/json": NaN}, "metadata": {"a": 1e999}}'
message = kernel.session.msg('display_data', {}, parent=kernel.get_parent())
parts = kernel.session.serialize(message)
parts[-1] = packed
parts[1] = kernel.session.sign(parts[2:])
kernel.iopub_socket.send_multipart(parts)
"""


def test_what_code_inside_sends_makes_no_error_and_is_counted(project: Project) -> None:
    (project.path / "conftest.py").unlink()
    (project.path / "agent.py").write_text(
        f"class Agent:\n    def run(self, trial):\n        trial.execute({HOSTILE_CELL!r})\n"
    )
    project.add_task("a", set="auto", answer=None, entrypoint={"path": "train.py"})
    project.run(agent="agent:Agent").assert_outcomes(failed=1)
    [result] = read_lines(project.latest / "results.jsonl")
    assert (result["error"], result["dropped"]) == (None, 1)
    folder = project.latest / result["folder"]
    [step] = read_lines(folder / "trajectory.jsonl")
    assert step["dropped"] == {"display_data": 1}
    assert "display_data left out: its data is its text/plain is not text" in step["observation"]
    for name in ("trajectory.jsonl", "trajectory.ipynb"):
        json.loads((folder / name).read_text(), parse_constant=pytest.fail)


@pytest.mark.parametrize(
    ("arguments", "selected"),
    [
        (["--super-category=data"], {"squad", "wrong"}),
        (["--super-set=masked"], {"squad", "wrong"}),
        (["-m", "super_category(name='data')"], {"squad", "wrong"}),
        (["-k", "data"], {"squad", "wrong", "database"}),
        (["--super-category=data", "--super-category=cpu"], {"squad", "wrong", "gpu"}),
        (["tasks/squad.task.yaml"], {"squad"}),
    ],
)
def test_tasks_are_selected_by_set_category_and_name(
    project: Project, arguments: list[str], selected: set[str]
) -> None:
    project.add_task("squad", set="masked", category="data")
    project.add_task("wrong", set="masked", category="data")
    project.add_task("gpu", set="expert", category="cpu")
    project.add_task("database")
    result = project.run("--collect-only", "-q", *arguments)
    listed = {line.split("::")[1] for line in result.outlines if "::" in line}
    assert listed == selected
    assert ("-k data also selects 1 task outside" in result.stdout.str()) == ("-k" in arguments)


def test_a_category_or_set_that_no_task_has_is_told_with_those_there_are(project: Project) -> None:
    project.add_task("squad", set="masked", category="data")
    project.add_task("gpu", category="cpu")
    project.add_task("plain")
    result = project.run("--super-category=dta", "--super-category=data")
    assert result.parseoutcomes()["passed"] == 1
    hint = "--super-category=dta selects no task: the categories here are cpu, data; did you mean `data`?"
    assert [line for line in result.outlines if "selects no task" in line] == [hint]
    result = project.run("--super-category=dta", "--super-set=auto")
    assert result.ret == pytest.ExitCode.NO_TESTS_COLLECTED
    hints = [hint, "--super-set=auto selects no task: the sets here are expert, masked"]
    assert [line for line in result.outlines if "selects no task" in line] == hints


@WITH_AND_WITHOUT_XDIST
def test_a_choice_that_leaves_no_task_is_told_with_what_there_is(
    project: Project, workers: tuple[str, ...]
) -> None:
    project.add_task("squad", set="masked", category="data")
    project.add_task("gpu")
    result = project.run("--super-epochs=2", "-k", "gpu", "--super-set=masked", *workers)
    assert result.ret == pytest.ExitCode.NO_TESTS_COLLECTED
    hint = "none of the 2 tasks here is selected: their sets are expert, masked; their categories are data"
    assert [line for line in result.outlines if "selected:" in line] == [hint]
    assert not (project.path / ".super").exists()


def sampled(project: Project, *arguments: str) -> set[str]:
    """The tasks that a run with these arguments tries."""
    project.run(*arguments)
    return {result["id"] for result in read_lines(project.latest / "results.jsonl")}


def test_a_sample_is_the_same_for_a_seed_and_takes_as_many_from_each_set(project: Project) -> None:
    for number in range(4):
        project.add_task(f"e{number}")
        project.add_task(f"m{number}", set="masked", category="data")
    found = sampled(project, "--super-sample=4")
    assert sorted(name[0] for name in found) == ["e", "e", "m", "m"]
    assert sampled(project, "--super-sample=4", "--super-epochs=2") == found
    assert sampled(project, "--super-sample=2") < found
    assert any(sampled(project, f"--super-sample=4:{seed}") != found for seed in (1, 2, 3))
    result = project.run("--super-sample=9", "--super-set=masked")
    assert result.parseoutcomes()["passed"] == 4
    hint = "--super-sample=9 is more than there is: it takes all of 4 tasks"
    assert [line for line in result.outlines if "more than there is" in line] == [hint]
    result = project.run("--super-sample=2", "--super-set=masked")
    assert {row["id"][0] for row in project.results.values()} == {"m"}
    assert "more than there is" not in result.stdout.str()


@pytest.mark.skipif(pytest.version_tuple < (9, 2), reason="pytest takes texts only there")
def test_a_number_may_stand_as_such_in_pytests_own_toml(project: Project) -> None:
    project.add_task("right")
    (project.path / "tox.ini").unlink()
    table = project.path / "pyproject.toml"
    table.write_text("[tool.pytest]\npythonpath = ['.']\nsuper_epochs = 2\nsuper_fail_under = ['0.5']\n")
    result = project.run()
    result.assert_outcomes(passed=2)
    result.stdout.fnmatch_lines(["gate: passed*"])


def test_collect_only_lists_what_would_run_and_leaves_nothing(project: Project) -> None:
    project.add_task("squad", set="masked", category="data", limits={"compute": 60})
    result = project.run("--collect-only")
    result.stdout.re_match_lines([r"squad +masked +data +60s +300s +400,000"])
    assert not (project.path / ".super").exists()


@pytest.mark.parametrize(("threshold", "status"), [("0.5", 0), ("0.51", 1)])
def test_under_a_gate_the_mean_accuracy_decides(project: Project, threshold: str, status: int) -> None:
    project.add_task("right")
    project.add_task("wrong")
    result = project.run(f"--super-fail-under={threshold}")
    assert result.ret == status
    assert result.parseoutcomes() == {"passed": 1, "missed": 1}
    verdict = result.outlines[-1]
    assert verdict.startswith(f"gate: {'passed' if status == 0 else 'FAILED'}, mean accuracy 0.5000")
    assert result.stdout.str().count("gate: ") == 1


def test_a_miss_under_a_gate_is_run_again_by_last_failed(project: Project) -> None:
    for id in ("right", "wrong_a", "wrong_b"):
        project.add_task(id)
    gate = "--super-fail-under=0"
    project.run(gate).assert_outcomes(passed=1)
    project.write("agent.py", AGENT.replace('"wrong"', '"wrong_a"'))
    for missed in (["wrong_a[1]", "wrong_b[1]"], ["wrong_a[1]"]):
        project.run(gate, "--lf")
        assert sorted(project.results) == missed


NOTE_KINDS = """
import pytest

@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item, call):
    if call.excinfo:
        print(item.name, "has", "failed" if call.excinfo.errisinstance(AssertionError) else "broken")
    return (yield)
"""


def test_a_miss_is_a_failed_assertion_to_other_plugins_and_an_error_is_not(project: Project) -> None:
    project.add_to_conftest(NOTE_KINDS)
    project.add_task("wrong")
    project.add_task("engine")
    result = project.run("-s")
    result.stdout.fnmatch_lines_random(["*wrong has failed", "*engine has broken"])


def test_the_verdict_and_the_unsolved_trials_are_coloured(project: Project) -> None:
    project.add_task("right")
    project.add_task("wrong")
    result = project.run("--super-fail-under=0.6", "--color=yes")
    assert result.outlines[-1].startswith("\x1b[31mgate: FAILED\x1b[0m, ")
    assert "\x1b[31mmissed \x1b[0m wrong: " in result.stdout.str()
    assert "\x1b" not in project.run("--super-fail-under=0.6", "--color=no").stdout.str()


def test_the_table_fits_a_terminal_of_80_columns(project: Project, monkeypatch: pytest.MonkeyPatch) -> None:
    project.add_task("right", set="masked", category="a-category-with-a-long-name")

    def widest() -> int:
        lines = project.run("--super-epochs=2").outlines
        return max(len(line) for line in lines if line.startswith(("set ", "masked ", "all ")))

    monkeypatch.setenv("COLUMNS", "60")
    assert 60 < widest() <= 80
    monkeypatch.setenv("COLUMNS", "160")
    assert 80 < widest() <= 160


def test_errors_count_as_zero_for_the_gate_and_fail_the_run_unless_allowed(project: Project) -> None:
    project.add_task("right")
    project.add_task("engine")
    assert project.run("--super-fail-under=0.5").ret == 1
    assert project.run("--super-fail-under=0.5", "--super-max-errors=0.5").ret == 0
    assert project.run("--super-fail-under=0.6", "--super-max-errors=0.5").ret == 1


def test_too_many_errors_make_the_figures_invalid_and_fail_the_run(project: Project) -> None:
    project.add_task("right")
    project.add_task("engine")
    result = project.run("--super-fail-under=0.5", "--super-max-errors=0.49", "--junitxml=out.xml")
    assert result.ret == pytest.ExitCode.TESTS_FAILED
    errors = "1 of 2 trials are infrastructure errors, more than 49 %, so the run fails"
    invalid = f"{errors}: run them again (--super-resume=latest)"
    assert result.outlines[-2:] == [
        f"invalid: {invalid}",
        "gate: cannot tell, too many trials are infrastructure errors",
    ]
    suite = ET.parse(project.path / "out.xml").getroot().find("testsuite")
    assert suite is not None
    told = {one.get("name"): one.get("value") for one in suite.iterfind("properties/property")}
    assert told["super.invalid"] == invalid
    assert project.run().outlines[-1].startswith("invalid: 1 of 2 trials are infrastructure errors, ")


def test_an_agent_skips_a_task_that_it_cannot_try(project: Project) -> None:
    project.add_task("a", solution={"cells": ["40 + 2"]})
    project.add_task("b")
    result = project.run("-rs", agent="gold")
    result.assert_outcomes(passed=1, skipped=1)
    result.stdout.fnmatch_lines(["*the agent gold cannot try this task: it has no solution"])
    stored = project.latest.resolve()
    result = project.run(f"--super-trajectory={stored}", "-rs", agent="replay")
    result.assert_outcomes(passed=1, skipped=1)
    result.stdout.fnmatch_lines([f"*replay cannot try this task: {stored} has no trajectory of b"])


@pytest.mark.parametrize("workers", ["-n1", pytest.param("-n4", marks=pytest.mark.slow)])
def test_a_dead_workers_trial_is_run_once_more_and_then_an_error(project: Project, workers: str) -> None:
    project.add_to_conftest("""
import os

@pytest.fixture
def super_agent(super_agent, super_task):
    if super_task.id == "before":
        os._exit(1)
    return super_agent
""")
    for id in ("right", "crash_once", "crash", "before"):
        project.add_task(id)
    gate = ("--super-max-errors=0.9", "--super-fail-under=0.9")
    result = project.run(workers, "--max-worker-restart=5", "--junitxml=out.xml", *gate)
    assert (result.ret, result.parseoutcomes()) == (1, {"passed": 2, "errors": 2, "requeued": 3})
    rows = project.results
    assert (rows["crash_once[1]"]["rerun"], rows["crash_once[1]"]["solved"]) == (1, True)
    assert rows["crash[1]"]["error"] == "the process that ran this trial died, at step 1, agent"
    assert rows["before[1]"]["error"].startswith("the process that ran this trial died")
    result.stdout.fnmatch_lines(["*3 reruns*", "gate: FAILED, mean accuracy 0.5000 is under 0.9"])
    xml = (project.path / "out.xml").read_text()
    assert xml.count("<testcase") == 4


def test_a_miss_whose_worker_dies_stays_and_is_not_run_again(project: Project) -> None:
    # Before it is reported, and after it.
    project.add_to_conftest("""
import os

@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item, call):
    report = yield
    dies_when = "call" if item.name == "wrong_before" else "teardown"
    if call.when == dies_when and hasattr(item.config, "workerinput"):
        os._exit(1)
    return report
""")
    for id in ("wrong_before", "wrong_after"):
        project.add_task(id)
    result = project.run("-n1", "--junitxml=out.xml")
    assert (result.ret, result.parseoutcomes()) == (1, {"failed": 1, "errors": 2})
    for row in project.results.values():
        assert (row["rerun"], row["solved"], row["error"]) == (0, False, None)
    told = "trouble wrong_after: after the trial: the process that had run it died"
    result.stdout.fnmatch_lines(["missed  wrong_before: accuracy 0*", told])
    assert (project.path / "out.xml").read_text().count("<testcase") == 2


def test_a_worker_begins_with_a_long_and_a_short_task_then_the_longest_come(project: Project) -> None:
    for minutes in range(1, 9):
        project.add_task(f"t{minutes}", limits={"compute": 60 * minutes})
    add_other_tests(project)
    result = project.run("-n1", "-v", "--super-sample=5")
    started = [line.split("::")[1].split()[0] for line in result.outlines if "PASSED" in line]
    # It finds the tasks that its controller finds, and takes the same sample.
    shortest, *others, longest = sorted(sampled(project, "--super-sample=5"))
    assert started == [longest, shortest, *reversed(others)]


def add_other_tests(project: Project) -> None:
    """Tests that pytest would collect in place of the tasks."""
    project.write("test_other.py", "def test_other(): assert 0")
    project.pytester.makeini("[pytest]\npythonpath = .\ntestpaths = test_other.py\n")


def test_without_a_path_the_tasks_folder_is_collected_and_not_testpaths(project: Project) -> None:
    project.add_task("right")
    add_other_tests(project)
    project.run().assert_outcomes(passed=1)


@pytest.mark.slow
def test_an_ini_file_can_set_the_agent_and_every_option(
    project: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    # As if Slurm's programs were here.
    monkeypatch.setattr("shutil.which", lambda name: f"/bin/{name}")
    # Without an engine, a run with this one does not begin.
    options = [option for option in OPTIONS if option.name != "engine"]
    project.add_task("right")
    (project.path / "given.txt").touch()
    project.write("given/run.json", '{"id": "given", "model": "openai/gpt-4o"}')
    project.write("given/trials/right/1.0/answers.jsonl", "")
    project.write("must.txt", "right")
    write_baseline(project.path / "given.json", Side(name="", run="", subject={}, tasks={}, trials=0))

    def seen(*arguments: str) -> tuple[dict[str, Any], str]:
        config = project.pytester.parseconfigure(*arguments)
        settings = repr(config.stash[RUN].settings) if RUN in config.stash else ""
        return {option.key: value_of(config, option) for option in options}, settings

    default, _ = seen()
    given, settings = seen(
        *(option.flag if option.is_flag else f"{option.flag}={given_value(option)}" for option in options)
    )
    lines = "".join(
        f"{option.key} = {'true' if option.is_flag else given_value(option)}\n" for option in options
    )
    project.pytester.makeini(f"[pytest]\npythonpath = .\n{lines}")
    assert settings
    assert seen() == (given, settings)
    assert [key for key in given if given[key] == default[key]] == []


def given_value(option: Option) -> str:
    """What the option can be told, and is not by default."""
    return GIVEN.get(option.name, "2")


# Of the options whose value must have a form of its own, or name what is there.
GIVEN = {
    "machines": "slurm:2",
    "agent": "agent:Agent",
    "sandbox": "local",
    "fail-under": "0.5",
    "answers": "given",
    "answers-miss": "fail",
    "baseline": "given.json",
    "anchor": "given.json",
    "pass-chance": "0.5",
    "cannot-tell": "fail",
    "must-solve": "must.txt",
    "resume": "given",
    "max-errors": "0.5",
    "scoring": "reference",
    "keep": "all",
    "html": "page.html",
    "set": "expert",
    "split": "dev",
    "retrieval": "oracle",
    "select": "model",
    "category": "data",
    "ca-bundle": "given.txt",
    "pip-config": "given.txt",
    "mount": "/a:/b",
    "prompt": "given.txt",
    "agent-files": "given",
    "agent-env": "A=b",
    "trajectory": "given.txt",
    "model": "openai/gpt-4o",
    "model-arg": "seed=1",
}

SEEN: dict[str, Any] = {
    "agent": "named",
    "query": "do it",
    "tokens": 600_000,
    "model": None,
    "kernel": "/fake",
}
# For each fixture the body of another, and what the agent then sees of it.
OVERRIDES: dict[str, tuple[str, dict[str, Any]]] = {
    "super_task": ("(super_task): return super_task.model_copy(update={'query': 'mine'})", {"query": "mine"}),
    "super_agent": ("(): return Agent('mine')", {"agent": "mine"}),
    "super_budget": ("(): return Budget(Limits(), tokens=123)", {"tokens": 123}),
    "super_model": ("(): return FakeModel('mine')", {"model": "mine"}),
    "super_make_kernel": ("(): return Mine", {"kernel": "/mine"}),
    "super_kernel": ("(): return Mine()", {"kernel": "/mine"}),
}


def test_a_conftest_overrides_each_fixture(project: Project) -> None:
    assert set(OVERRIDES) == {name for name in vars(fixtures) if name.startswith("super_")}
    project.write("agent.py", TELLS_WHAT_IT_SEES)
    for fixture, (body, seen) in OVERRIDES.items():
        project.write(f"tasks/{fixture}/conftest.py", f"{OVERRIDING}\n@pytest.fixture\ndef {fixture}{body}\n")
        project.add_task(fixture, file=f"{fixture}/one", answer=SEEN | seen)
    project.run().assert_outcomes(passed=len(OVERRIDES))


TELLS_WHAT_IT_SEES = """
class Agent:
    def __init__(self, name="named"):
        self.name = name

    def run(self, trial):
        ask = [{"role": "user", "content": "hi"}]
        trial.submit({
            "agent": self.name,
            "query": trial.task.query,
            "tokens": trial.budget.token_limit,
            "model": trial.complete(ask).text if trial.model else None,
            "kernel": trial.kernel.workdir,
        })
"""
OVERRIDING = """
import pytest
from agent import Agent
from pytest_super.trial.budget import Budget
from pytest_super.tasks.task import Limits
from pytest_super.testing import FakeKernel, FakeModel

class Mine(FakeKernel):
    workdir = "/mine"
"""


def test_results_name_the_repository_without_its_version_and_without_a_key(project: Project) -> None:
    place = {"git": "https://me:hidden@example.org/code.git", "commit": "0" * 40}
    project.add_task("right", repository=place)
    project.run()
    [row] = project.results.values()
    assert row["repository"] == "https://example.org/code.git"


def test_results_state_the_fixed_variables_of_the_sandbox(project: Project) -> None:
    (project.path / "conftest.py").unlink()
    cell = "import os; ' '.join(map(os.environ.get, ('TZ', 'PYTHONHASHSEED', 'LANG', 'LC_ALL')))"
    project.add_task(
        "own", solution={"cells": [cell]}, sandbox={"env": {"TZ": "XYZ"}}, answer="XYZ 0 C.UTF-8 C.UTF-8"
    )
    project.run(agent="gold").assert_outcomes(passed=1)
    recorded = {"TZ": "XYZ", "PYTHONHASHSEED": "0", "LANG": "C.UTF-8", "LC_ALL": "C.UTF-8"}
    assert project.results["own[1]"]["environment"] == recorded


def test_the_files_of_an_unsolved_trial_are_kept(project: Project) -> None:
    (project.path / "conftest.py").unlink()
    project.add_task("solved", solution={"cells": ["42"]})
    project.add_task("missed", solution={"cells": ["%%writefile note.txt\nhello", "41"]})
    result = project.run("--super-keep=failed", agent="gold")
    rows = project.results
    assert (rows["solved[1]"]["kept"], rows["solved[1]"]["isolated"]) == (None, False)
    command = rows["missed[1]"]["kept"]
    result.stdout.fnmatch_lines([f"kept    missed: {command}"])
    kept = Path(command.split()[1])
    assert (kept / "note.txt").read_text() == "hello\n"
    shutil.rmtree(kept.parent)


TROUBLE = """
from pytest_super.errors import EngineError

@pytest.fixture(autouse=True)
def trouble(super_task):
    if super_task.id == "setup":
        raise EngineError("the engine does not answer")
    yield
    if super_task.id == "right":
        raise EngineError("the engine has left")
"""


def test_a_gate_stays_open_and_fails_if_the_run_stops_before_all_trials(project: Project) -> None:
    for id in ("engine", "right"):
        project.add_task(id)
    result = project.run("-x", "--super-fail-under=0", "--super-max-errors=1")
    assert result.ret == pytest.ExitCode.TESTS_FAILED
    result.stdout.fnmatch_lines(["1 not run"])
    assert result.outlines[-1] == "gate: open, the run has no mean accuracy of all trials"


def test_trouble_after_a_trial_has_a_line_that_says_why_the_run_failed(project: Project) -> None:
    project.add_to_conftest(TROUBLE)
    project.add_task("right")
    result = project.run("--super-fail-under=1")
    assert result.ret == pytest.ExitCode.TESTS_FAILED
    result.stdout.fnmatch_lines(
        ["trouble right: after the trial: the engine has left", "gate: passed, mean accuracy 1.0000*"]
    )
    told = {"id": "right", "epoch": 1, "rerun": 0, "folder": "trials/right/1.0"}
    assert read_lines(project.latest / "trouble.jsonl") == [{**told, "error": "the engine has left"}]
    assert project.results["right[1]"]["error"] is None


def test_an_error_has_the_same_words_before_a_trial_and_in_it(project: Project) -> None:
    project.add_to_conftest(TROUBLE)
    project.add_task("setup")
    project.add_task("engine")
    result = project.run()
    rows = project.results.values()
    assert {row["error"] for row in rows} == {"the engine does not answer"}
    # A trial that never got a sandbox is neither isolated nor not.
    assert {row["id"]: row["isolated"] for row in rows} == {"setup": None, "engine": False}
    result.stdout.fnmatch_lines(["error   setup: the engine does not answer (trials/setup/1.0)"])


@pytest.mark.parametrize(
    ("statement", "words"),
    [("raise ValueError('no room')", "ValueError: no room"), ("pytest.skip('no room')", "Skipped: no room")],
)
def test_a_hook_that_fails_when_a_trial_is_over_makes_it_an_error(
    project: Project, statement: str, words: str
) -> None:
    project.add_to_conftest(f"def pytest_super_trial_finished():\n    {statement}\n")
    project.add_task("right")
    result = project.run()
    result.assert_outcomes(errors=1)
    [row] = project.results.values()
    assert (row["error"], row["solved"], row["metrics"]["accuracy"]) == (words, False, None)
    assert json.loads((project.latest / row["folder"] / "result.json").read_text()) == row
    result.stdout.fnmatch_lines([f"error   right: {words} (trials/right/1.0)"])


@pytest.mark.parametrize(
    ("statement", "words"),
    [
        ("pytest.fail('no network')", "Failed: no network"),
        ("raise SystemExit('no network')", "SystemExit: no network"),
    ],
)
def test_a_hook_that_fails_when_the_run_is_over_leaves_the_summary_and_the_verdict(
    project: Project, statement: str, words: str
) -> None:
    project.add_to_conftest(f"def pytest_super_run_finished():\n    {statement}\n")
    project.add_task("right")
    result = project.run("--super-fail-under=0.5")
    assert result.ret == pytest.ExitCode.TESTS_FAILED
    result.stdout.fnmatch_lines(["all *", f"pytest_super_run_finished raised {words}", "gate: passed, *"])
    assert (project.latest / "verdict.json").exists()


def test_epochs_repeat_every_task_and_are_summed_up_in_the_terminal_and_in_junit(project: Project) -> None:
    # Each epoch of a replay repeats its own; the third, which is not stored, repeats the first.
    for category in ("data", "goal"):
        project.add_task(category, set="masked", category=category, entrypoint={"path": "train.py"})
        for epoch, answer in ((1, 0), (2, 42)):
            step = {"number": 1, "origin": "agent", "action": {"type": "submit", "content": str(answer)}}
            project.write(f"stored/trials/{category}/{epoch}.1/trajectory.jsonl", json.dumps(step))
    options = ("-v", "--super-trajectory=stored", "--super-epochs=3", "--junitxml=out.xml")
    result = project.run(*options, agent="replay")
    result.stdout.fnmatch_lines(
        [
            "*data.task.yaml::data[[]3[]]*",
            "masked * data * 0.333 ± 0.577 *",
            "masked * goal * 0.333 ± 0.577 *",
            "masked * all * 6 * 0.333 ± 0.577 *",
            "all * 6 * 0.333 ± 0.577 *",
            "±: sample deviation of the means of 3 epochs",
        ]
    )
    assert [project.results[f"data[{epoch}]"]["metrics"]["accuracy"] for epoch in (1, 2, 3)] == [0, 1, 0]
    suite = ET.parse(project.path / "out.xml").getroot().find("testsuite")
    assert suite is not None
    totals = {one.get("name"): one.get("value") for one in suite.iterfind("properties/property")}
    for prefix in ("super", "super.masked", "super.masked.data"):
        assert float(totals[f"{prefix}.accuracy_deviation"] or "nan") == pytest.approx(0.5773502)
        assert totals[f"{prefix}.landmarks_deviation"] == ""
    assert float(totals["super.masked.agreement_with_accuracy"] or "nan") == pytest.approx(2 / 3)
    assert (totals["super.epochs"], totals["super.masked.trials"]) == ("3", "6")
