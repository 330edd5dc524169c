"""Landmarks in the output of real cells, whose shell commands write to a terminal."""

from pytest_super.kernel.conformance.support import started
from pytest_super.kernel.providers.local import LocalSandbox
from pytest_super.metrics.matching.landmark_matcher import LandmarkMatcher


def test_lines_that_a_shell_command_ends_in_its_own_way_are_one_landmark() -> None:
    ends = {"LF": r"\n", "CRLF": r"\r\n", "CR": r"\r", "CR CRLF": r"\r\r\n"}
    matcher = LandmarkMatcher([f"{name}: training done metrics" for name in ends])
    with started(LocalSandbox()) as kernel:
        for name, end in ends.items():
            cell = rf"!printf '{name}: training{end}done\nmetrics\n'"
            matcher.begin_cell(cell)
            kernel.execute(cell, listener=matcher.feed)
            matcher.end_cell()
    assert matcher.hits == [True] * len(ends)
