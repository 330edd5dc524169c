"""Our descendants among the processes of a machine, by a /proc that the tests make up."""

import os
from collections.abc import Iterable

import pytest

from pytest_super.kernel.inside import processes
from pytest_super.kernel.inside.processor_time import PASSES, Family

US = os.getpid()


class Machine:
    """`parents` has the processes; one whose parent has just ended is in `parents` with that parent."""

    def __init__(self) -> None:
        self.parents = {1: 0, US: 1, **dict.fromkeys(range(10_000_000, 10_000_300), 1)}
        self.read: list[int] = []

    def statistics(self, pids: Iterable[int]) -> dict[int, list[bytes]]:
        self.read += pids
        fields = [b"0"] * 50
        return {pid: [*fields[: processes.PARENT], b"%d" % self.parents[pid], *fields] for pid in pids}


@pytest.fixture
def machine(monkeypatch: pytest.MonkeyPatch) -> Machine:
    machine = Machine()
    monkeypatch.setattr(processes, "pids", lambda: set(machine.parents))
    monkeypatch.setattr(processes, "statistics", machine.statistics)
    return machine


def test_only_our_descendants_and_new_processes_are_read_again(machine: Machine) -> None:
    family = Family()
    machine.parents |= {5: US, 6: 5}
    assert family.statistics().keys() == {5, 6}
    machine.read.clear()
    machine.parents |= {7: 6, 8: 1}
    assert family.statistics().keys() == {5, 6, 7}
    assert sorted(machine.read) == [5, 6, 7, 8]


def test_a_process_whose_parent_has_just_ended_is_looked_at_again(machine: Machine) -> None:
    family = Family()
    machine.parents |= {6: 5, 7: 6}
    assert family.statistics() == {}
    machine.parents[6] = US
    assert family.statistics().keys() == {6, 7}


def test_a_pid_that_is_used_again_is_read_at_once_or_after_some_passes(machine: Machine) -> None:
    family = Family()
    machine.parents[5] = 1
    family.statistics()
    del machine.parents[5]
    family.statistics()
    machine.parents[5] = US
    assert family.statistics().keys() == {5}
    other = 10_000_000
    machine.parents[other] = US
    for _ in range(PASSES):
        found = family.statistics().keys()
    assert found == {5, other}
