"""JUnit XML: a valid file with every figure, whatever the trials wrote."""

import os
from importlib.resources import files

import pytest
from lxml import etree

from tests.integration.conftest import UNSEEN, WITH_AND_WITHOUT_XDIST, Project


def read_valid(project: Project) -> etree._Element:
    """The file's one suite; it must be valid against the schema that ships."""
    schema = etree.XMLSchema(etree.fromstring((files("pytest_super") / "report/junit.xsd").read_bytes()))
    parser = etree.XMLParser(huge_tree=True)
    tree = etree.parse(project.path / "out.xml", parser)
    schema.assertValid(tree)
    suite = tree.getroot().find("testsuite")
    assert suite is not None
    return suite


def properties(element: etree._Element) -> dict[str, str]:
    return {p.get("name", ""): p.get("value", "") for p in element.iterfind("properties/property")}


def cases(suite: etree._Element) -> dict[str, etree._Element]:
    return {case.get("name", ""): case for case in suite.iterfind("testcase")}


def test_each_testcase_carries_its_figures_and_the_suite_the_totals(project: Project) -> None:
    project.add_task("right", landmarks=["half"], limits={"compute": 60})
    project.add_task("wrong_data", set="masked", category="data")
    project.run("--junitxml=out.xml")
    suite = read_valid(project)
    right = properties(cases(suite)["right"])
    assert all(float(right.pop(f"super.{name}_seconds")) >= 0 for name in ("compute", "wall"))
    assert all(right.pop(f"super.{name}") for name in ("started", "worker"))
    assert right.pop("super.trajectory") == str(
        project.latest.resolve() / "trials/right/1.0/trajectory.ipynb"
    )
    assert right == {
        "super.set": "expert",
        "super.category": "",
        "super.epoch": "1",
        "super.rerun": "0",
        "super.agent": "agent:Agent",
        "super.model": "",
        "super.isolated": "0",
        "super.headline": "accuracy",
        "super.cause": "",
        "super.difference": "",
        "super.steps": "3",
        "super.repeats": "1",
        "super.folder": "trials/right/1.0",
        "super.accuracy": "1.0",
        "super.landmarks": "1.0",
        "super.script_executed": "",
        "super.graded": "",
        "super.self_report": "",
        "super.suspect": "0.0",
        "super.integrity": "echoed landmark, step 1: what matched half is in the source of its cell",
        "super.unseen": UNSEEN,
        "super.submitted": "1.0",
        "super.solved": "1",
        "super.tokens": "0",
        "super.cost_usd": "",
        "super.stop_reason": "submitted",
    }
    totals = properties(suite)
    assert totals["super.accuracy"] == "0.5"
    assert totals["super.masked.data.accuracy"] == "0.0"
    assert totals["super.expert.trials"] == "1"
    message = cases(suite)["wrong_data"].find("failure").get("message")  # type: ignore[union-attr]
    assert message is not None
    assert "accuracy 0" in message


@WITH_AND_WITHOUT_XDIST
def test_trouble_is_an_error_in_whatever_phase_and_one_testcase_tells_all(
    project: Project, workers: tuple[str, ...]
) -> None:
    for id in ("right", "wrong", "engine", "setup"):
        project.add_task(id)
    project.add_to_conftest(
        """
from pytest_super.errors import EngineError

@pytest.fixture(autouse=True)
def trouble(super_task):
    if super_task.id == "setup":
        raise EngineError("no engine")
    yield
    raise EngineError("the engine has left")
"""
    )
    result = project.run("--junitxml=out.xml", "--super-html=page.html", *workers)
    result.assert_outcomes(passed=1, failed=1, errors=5)
    assert "not 42" in (project.path / "page.html").read_text()
    suite = read_valid(project)
    assert (suite.get("failures"), suite.get("errors"), suite.get("tests")) == ("1", "3", "4")
    told = {
        name: [(e.tag, e.get("message")) for e in case.iterfind("*") if e.tag != "properties"]
        for name, case in cases(suite).items()
    }
    left = ("error", 'failed on teardown with "the engine has left"')
    assert told["right"] == [left]
    assert told["wrong"] == [("failure", "accuracy 0; wrong value; the answer is 0, not 42"), left]
    failure = cases(suite)["wrong"].find("failure")
    assert failure is not None
    assert (
        failure.text == "accuracy 0; wrong value; the answer is 0, not 42; trials/wrong/1.0/trajectory.ipynb"
    )
    assert told["engine"] == [("error", "the engine does not answer"), left]
    assert [tag for tag, _ in told["setup"]] == ["error"]
    assert properties(cases(suite)["setup"])["super.stop_reason"] == "error"
    wrong = properties(cases(suite)["wrong"])
    assert (wrong["super.accuracy"], wrong["super.worker"]) == ("0.0", "gw0" if workers else "main")
    assert properties(suite)["super.expert.trials"] == "4"


SEEN = """
import pytest

@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item, call):
    report = yield
    if call.when != "setup" and report.user_properties:
        figures = dict(report.user_properties)
        print(item.name, call.when, report.outcome, figures["super.accuracy"], figures["super.trajectory"])
    return report
"""


def test_plugins_that_were_there_before_see_a_miss_as_skipped_and_the_figures(project: Project) -> None:
    project.write("seen.py", SEEN)
    project.pytester.syspathinsert()
    for id in ("right", "wrong"):
        project.add_task(id)
    (project.path / "test_plain.py").write_text("def test_a(): pass\ndef test_b(): assert 0\n")
    options = ("--super-fail-under=0", "-pseen", "-pno:cacheprovider", "-s", "--junitxml=out.xml")
    result = project.run(*options, "tasks", "test_plain.py")
    result.stdout.fnmatch_lines(
        [
            "*right call passed 1.0 */trials/right/1.0/trajectory.ipynb",
            "*right teardown passed 1.0 */trials/right/1.0/trajectory.ipynb",
            "*wrong call skipped 0.0 */trials/wrong/1.0/trajectory.ipynb",
            "*wrong teardown passed 0.0 */trials/wrong/1.0/trajectory.ipynb",
        ]
    )
    suite = read_valid(project)
    skipped = cases(suite)["wrong"].find("skipped")
    assert skipped is not None
    assert "missed: accuracy 0; wrong value" in (skipped.get("message") or "")
    # Other tests stay as pytest wrote them.
    assert [suite.get(name) for name in ("tests", "failures", "skipped")] == ["4", "1", "1"]


def test_hostile_text_leaves_a_valid_file(project: Project) -> None:
    (project.path / "agent.py").write_text(
        r"""
class Agent:
    def run(self, trial):
        hostile = "\x00\x1b[31m]]> <b> \ud800 \U0001f600 \uffff "
        print(hostile.encode("utf-8", "replace").decode() * 100_000)
        trial.execute("print(" + repr(hostile) + ")")
        raise ValueError(hostile)
"""
    )
    project.add_task("hostile")
    project.run("--junitxml=out.xml", "-o", "junit_logging=all")
    suite = read_valid(project)
    failure = cases(suite)["hostile"].find("failure")
    assert failure is not None
    assert "]]> <b>" in (failure.get("message") or "")


def test_a_file_that_cannot_be_completed_is_one_line_below_the_summary(project: Project) -> None:
    project.add_task("right")
    result = project.run(f"--junitxml={os.devnull}")
    assert result.ret == pytest.ExitCode.TESTS_FAILED
    result.stdout.fnmatch_lines(
        ["all *", f"the JUnit XML {os.devnull} stays as pytest wrote it, *: it is not a regular file"]
    )
    result.stderr.no_fnmatch_line("*Traceback*")


def test_a_file_that_pytest_cannot_write_leaves_the_summary_and_fails_the_run(project: Project) -> None:
    project.add_task("right")
    result = project.run("--junitxml=/dev/null/out.xml")
    assert result.ret == pytest.ExitCode.TESTS_FAILED
    result.stdout.fnmatch_lines(["all *", "the end of the session failed (JUnit XML, hooks): *Error: *"])
