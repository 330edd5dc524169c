"""Signs of dishonest trials: found when a trial ends, scored as `suspect`, and shown in every report."""

from __future__ import annotations

import xml.etree.ElementTree as ET
from typing import TYPE_CHECKING

import pytest

from pytest_super.kernel.providers.registry import find_provider
from pytest_super.kernel.sandbox import SandboxSettings
from tests.dishonest import CELLS, kinds_by_cell
from tests.integration.conftest import WITH_AND_WITHOUT_XDIST

if TYPE_CHECKING:
    from tests.integration.conftest import Project

ECHOES = """
class Agent:
    def run(self, trial):
        if trial.task.id == "echoes":
            trial.execute("print('Epoch 9')")
        trial.submit(42)
"""


@WITH_AND_WITHOUT_XDIST
def test_a_trial_that_echoes_a_landmark_is_suspect_in_every_report(
    project: Project, workers: tuple[str, ...]
) -> None:
    project.write("echoing.py", ECHOES)
    project.add_task("echoes", landmarks=["Epoch 9"])
    project.add_task("honest", landmarks=["Epoch 9"])
    options = (*workers, "--junitxml=report.xml", "--super-fail-under=suspect<0.1")
    ran = project.run(*options, agent="echoing:Agent")
    assert ran.ret == pytest.ExitCode.TESTS_FAILED
    echoes, honest = (project.results[name] for name in ("echoes[1]", "honest[1]"))
    evidence = "what matched Epoch 9 is a text that the agent wrote"
    sign = {"kind": "echoed output", "step": 1, "evidence": evidence, "is_suspect": True}
    assert (echoes["integrity"], honest["integrity"]) == ([sign], [])
    # The kernel of this project observes none.
    files = ["files outside of the working directory", "files outside of the sandbox's folder"]
    assert (echoes["unseen"], honest["unseen"]) == (["processes", *files], files)
    assert [one["metrics"]["suspect"] for one in (echoes, honest)] == [1.0, 0.0]
    ran.stdout.fnmatch_lines(
        [
            "look twice: 1 echoed output",
            "1 suspect trial: accuracy 1.000, 1.000 without",
            f"suspect echoes: echoed output, step 1: {evidence}",
            "gate: FAILED, mean suspect 0.5000 is not below 0.1",
        ]
    )
    cases = {case.get("name"): case for case in ET.parse(project.path / "report.xml").iter("testcase")}
    told = {one.get("name"): one.get("value") for one in cases["echoes"].iterfind("properties/property")}
    assert (told["super.suspect"], told["super.integrity"]) == ("1.0", f"echoed output, step 1: {evidence}")


@pytest.mark.slow
@pytest.mark.parametrize(
    ("sandbox", "unseen"), [("local", ["files outside of the sandbox's folder"]), ("bubblewrap", [])]
)
def test_files_that_decide_what_later_commands_do_are_seen_and_those_of_packages_are_none(
    pytester: pytest.Pytester, sandbox: str, unseen: list[str]
) -> None:
    if reason := find_provider(sandbox).why_unavailable(SandboxSettings()):
        pytest.skip(reason)
    kinds, not_seen = kinds_by_cell(pytester, sandbox)
    assert kinds == {name: expected for name, (_, expected) in CELLS.items()}
    assert set(map(tuple, not_seen.values())) == {tuple(unseen)}
