"""What is looked for in a trial that has ended, and in which of its traces: never in the agent's words."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from pytest_super.grading.changed_code import ChangedCode
from pytest_super.integrity.deciding import DecidingFiles
from pytest_super.metrics.evidence import Evidence, GradedValue
from pytest_super.store.trajectory import PROGRAM
from pytest_super.tasks.grade import SAME
from pytest_super.tasks.task import Task


@dataclass(frozen=True, kw_only=True)
class Traces:
    """What a trial has left where the agent could not change it afterwards."""

    task: Task
    evidence: Evidence
    """Its `signs` are still to be found."""
    files: DecidingFiles | None = None
    """Those that the agent has made or changed; None if the sandbox does not show them."""
    code: Sequence[ChangedCode] | None = None
    """The Python files that were graded and that the agent has changed; None if that is not known."""
    agent_files: Mapping[str, str] = field(default_factory=dict)
    """The texts of the agent's own files by their paths."""
    graded_in: str = ""
    """As in the results, like the next two."""
    changed_elsewhere: Sequence[str] | None = None
    whole_file: Sequence[GradedValue] | None = None


class Seen(NamedTuple):
    """Something that was found."""

    evidence: str
    step: int | None = None


@dataclass(frozen=True, kw_only=True)
class Look:
    """An entry of the registry: one kind of signs."""

    kind: str
    find: Callable[[Traces], Iterable[Seen]]
    is_suspect: bool = False
    """Whether an honest agent has no reason for it, so that the score is doubtful."""
    needs: str = ""
    """What has to be observed for it: a key of OBSERVED, as in the field `unseen` of results."""

    def can_see(self, traces: Traces) -> bool:
        """Whether that was observed in this trial. If not, `find` is not called."""
        return OBSERVED[self.needs](traces)


def observes_processes(traces: Traces) -> bool:
    ran = [step for step in traces.evidence.steps if step.origin == "agent" and step.action.type in RUN]
    return not ran or any(step.processes is not None for step in ran)


# The types of steps that run code.
RUN = ("execute", PROGRAM)
PROCESSES, FILES = "processes", "files outside of the working directory"
SYSTEM, CODE = (
    "files outside of the sandbox's folder",
    "what the agent has changed in the code that was graded",
)
UNREAD = "changed code that could not be read"
LEFT = "files that were not collected"
OBSERVED: Mapping[str, Callable[[Traces], bool]] = {
    "": lambda _traces: True,
    PROCESSES: observes_processes,
    FILES: lambda traces: traces.files is not None,
    SYSTEM: lambda traces: traces.files is not None and traces.files.is_whole,
    CODE: lambda traces: not traces.graded_in or traces.code is not None,
    UNREAD: lambda traces: all(one.acts is not None for one in traces.code or ()),
    LEFT: lambda traces: traces.graded_in in ("", SAME) or traces.changed_elsewhere is not None,
}
