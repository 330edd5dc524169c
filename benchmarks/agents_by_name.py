"""Many agents of one program at once, compared with the bare program in as many of the same containers.

Usage: python benchmarks/agents_by_name.py [--small] [--agent codex] [--many 16] [--turns 8 60] [--rounds 2]

Ours: `pytest -n 16 --super-agent=codex` on 16 tasks, in containers without network, whose programs ask at the
model door. Bare: 16 times `docker run` at once of the same image, with the same command line, settings and
prompt, but in the host's network, and with the model's own address. Both ask the same scripted server, which
waits for a second and then streams 50 events a second: an answer takes 2.4 seconds. In each turn it calls the
program's shell with a Python that prints a line every 25 ms for a second.

Both are measured in turn, from the start of their first process to the end of their last, so with the start
and the removal of the containers. Ours also includes the start of pytest, of its workers and gateway, and of
a kernel in each container, the reading of the answers, the scores, and all that a run stores. Two lengths of
sessions show what is added once, and what in each turn.

The memory of the containers is the highest sum of what `docker stats` shows, measured every two seconds. The
memory outside is that of pytest, its workers and the gateway, or of the clients `docker run`.
"""

from __future__ import annotations

import argparse
import io
import json
import shlex
import statistics
import sys
import tarfile
import tempfile
import uuid
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING, cast

from container_memory import TASK_LABEL, ContainerMemory, containers_of
from model_server import serving
from process_tree import MIB, ONLY_REQUIRED_PLUGINS, Measured, measure
from rows import print_row

from pytest_super.agents.registry import installed_agent
from pytest_super.cli import main as pytest_super
from pytest_super.kernel.providers.docker.container_config import WORKDIR
from pytest_super.kernel.providers.docker.engine import inspect
from pytest_super.kernel.providers.docker.image import DEFAULT_IMAGE
from pytest_super.kernel.providers.docker.image.agent import name_with
from pytest_super.kernel.providers.docker.sweep import remove
from pytest_super.model.protocols.registry import environment as model_environment
from pytest_super.programs.installed.agent import HOME, PROMPT, Additions, InstalledAgent, InstalledProgram
from pytest_super.trial.trial import Trial

if TYPE_CHECKING:
    from model_server import Answer

# Seconds before an answer, and between two of its events.
LATENCY, PAUSE = 1.0, 0.02
ANSWER_FILE = f"{WORKDIR}/.super-answer.json"
THOUGHT = "I run the next epochs and read what they print, then I decide how to go on. " * 3
EPOCHS = (
    "python3 -c 'import time; "
    '[(print("epoch", n, "loss 0.5 accuracy 0.75", flush=True), time.sleep(0.025)) for n in range(40)]\''
)
MODELS = {"codex": "openai/gpt-4o", "claude-code": "anthropic/claude-sonnet-4-5"}


@dataclass(frozen=True, kw_only=True)
class Sessions:
    """`many` programs at once, each of which runs `turns` commands."""

    agent: InstalledAgent
    many: int
    turns: int
    names: list[str] = field(default_factory=list)

    def renamed(self) -> Sessions:
        """The same with new names, by which the containers of one measurement are found."""
        token = uuid.uuid4().hex[:8]
        names = [f"session-{token}-{number}" for number in range(self.many)]
        return Sessions(agent=self.agent, many=self.many, turns=self.turns, names=names)

    @property
    def image(self) -> str:
        return name_with(DEFAULT_IMAGE, self.agent.program(is_exact=False))

    @property
    def model(self) -> str:
        return MODELS[self.agent.name]

    @property
    def answers(self) -> list[Answer]:
        commands = [EPOCHS] * (self.turns - 1) + [f"echo 42 > {ANSWER_FILE}"]
        return [*(call_of(self.agent.name, command) for command in commands), "42"]


@dataclass(frozen=True, kw_only=True)
class Cost:
    outside: Measured
    """The processes outside of the containers, and the time."""
    inside: int
    """The peak of the containers together, in bytes."""


def call_of(agent: str, command: str) -> Answer:
    """The call of the program's shell."""
    if agent == "codex":
        arguments = {"cmd": command, "yield_time_ms": 30_000}
        return {"text": THOUGHT, "tool": "exec_command", "arguments": arguments}
    return {"text": THOUGHT, "tool": "Bash", "arguments": {"command": command, "description": "epochs"}}


def query_of(name: str) -> str:
    return f"Train the model of {name}, and report its figure."


def measure_ours(sessions: Sessions, server: dict[str, str], folder: Path) -> Measured:
    tasks = [
        {"id": name, "set": "expert", "query": query_of(name), "answer": 42, "sandbox": {"network": False}}
        for name in sessions.names
    ]
    text = "---\n".join(json.dumps(task) + "\n" for task in tasks)
    (folder / "sessions.task.yaml").write_text(text)
    options = [f"--super-agent={sessions.agent.name}", f"--super-model={sessions.model}"]
    more = ["--super-sandbox=docker", str(folder)]
    command = [sys.executable, "-m", "pytest", "-q", f"-n{sessions.many}", *options, *more]
    # If a task is unsolved, pytest fails.
    return measure(command, folder=folder, environment=ONLY_REQUIRED_PLUGINS | server)


def measure_bare(sessions: Sessions, server: dict[str, str], folder: Path) -> Measured:
    lines = [bare_line(sessions, name, server, folder) for name in sessions.names]
    script = "\n".join(f"{line} &" for line in lines) + "\nwait\n"
    try:
        measured = measure(["sh", "-c", script], folder=folder, environment={})
    finally:
        # They outlive a measurement that was interrupted.
        for container in containers_of(sessions.names):
            remove(container)
    for name in sessions.names:
        printed = (folder / f"{name}.txt").read_text()
        if "\nanswer: 42\n" not in printed:
            raise SystemExit(f"the bare program failed:\n{printed[-3000:]}")
    return measured


def bare_line(sessions: Sessions, name: str, server: dict[str, str], folder: Path) -> str:
    """The command line of one container. It gets the program's files as an archive on its input."""
    program = InstalledProgram(sessions.agent, Additions())
    values = program.values(stand_in(sessions.model))
    prompt = PROMPT.format(query=query_of(name), answer_file=values["answer_file"])
    files = {f"{HOME}/{file}": text for file, text in sessions.agent.files.items()}
    archive, printed = folder / f"{name}.tar", folder / f"{name}.txt"
    archive.write_bytes(archive_of({**files, values["prompt_file"]: prompt}))
    environment = model_environment(server["ANTHROPIC_BASE_URL"], "none-is-needed") | program.environment(
        values
    )
    variables = [f"--env={variable}={value}" for variable, value in environment.items()]
    inside = f"exec 2>&1; tar -xC / && {program.line(values)}; echo; echo answer: $(cat {ANSWER_FILE})"
    start = ["docker", "run", "--rm", "-i", "--network=host", f"--label={TASK_LABEL}={name}"]
    place = [f"--workdir={WORKDIR}", "--entrypoint=sh", sessions.image]
    command = shlex.join([*start, *variables, *place, "-c", inside])
    return f"{command} < {shlex.quote(str(archive))} > {shlex.quote(str(printed))} 2>&1"


def stand_in(model: str) -> Trial:
    """What the values of the placeholders are read from."""
    names = {"kernel": SimpleNamespace(workdir=WORKDIR), "model": SimpleNamespace(name=model)}
    return cast("Trial", SimpleNamespace(**names))


def archive_of(files: dict[str, str]) -> bytes:
    target = io.BytesIO()
    with tarfile.open(fileobj=target, mode="w") as archive:
        for path, text in files.items():
            entry = tarfile.TarInfo(path.lstrip("/"))
            entry.size = len(text.encode())
            archive.addfile(entry, io.BytesIO(text.encode()))
    return target.getvalue()


WAYS = {"ours": measure_ours, "bare": measure_bare}


def cost_of(way: str, sessions: Sessions) -> Cost:
    named = sessions.renamed()
    memory = ContainerMemory(named.names)
    with (
        tempfile.TemporaryDirectory() as folder,
        serving(named.answers, LATENCY, PAUSE) as server,
        memory.watching(),
    ):
        return Cost(outside=WAYS[way](named, server, Path(folder)), inside=memory.peak)


def compare(sessions: Sessions, rounds: int) -> dict[str, list[Cost]]:
    """Measure both in turn. Prints the row of their times."""
    costs: dict[str, list[Cost]] = {way: [] for way in WAYS}
    for number in range(rounds):
        for way in list(WAYS)[:: 1 if number % 2 else -1]:
            costs[way].append(cost_of(way, sessions))
            print(f"{sessions.turns} turns, {way}: {costs[way][-1].outside.seconds:.1f} s", flush=True)
    ours, bare = map(seconds_of, costs.values())
    print_row(
        f"{sessions.many} sessions of `{sessions.agent.name}` at once, {sessions.turns} turns of 3.5 s / the "
        "bare programs in the same containers (`agents_by_name.py`)",
        f"{ours:.1f} s",
        peer=f"{bare:.1f} s",
        ratio=ours / bare,
        wanted="1.1",
    )
    return costs


def seconds_of(costs: Sequence[Cost]) -> float:
    return statistics.median(cost.outside.seconds for cost in costs)


def report_added(found: dict[int, dict[str, list[Cost]]]) -> None:
    """What is added once and in each turn, by the shortest and the longest sessions."""
    short, long = min(found), max(found)
    added = {turns: seconds_of(found[turns]["ours"]) - seconds_of(found[turns]["bare"]) for turns in found}
    if short == long:
        print(f"{added[short]:.1f} s added")
        return
    each = (added[long] - added[short]) / (long - short)
    print(f"{added[short] - each * short:.1f} s added once, and {each:.2f} s in each turn")


def report_memory(costs: dict[str, list[Cost]]) -> None:
    ours, bare = (max(cost.inside for cost in found) for found in costs.values())
    print_row(
        "memory of their containers together",
        f"{ours / MIB:,.0f} MiB",
        peer=f"{bare / MIB:,.0f} MiB",
        # A small run can end before the first sample.
        ratio=ours / bare if bare else None,
    )
    outside, clients = (max(cost.outside.peak.total for cost in found) for found in costs.values())
    print_row(
        "memory outside: pytest, its workers and the gateway / the clients `docker run`",
        f"{outside / MIB:,.0f} MiB",
        peer=f"{clients / MIB:,.0f} MiB",
    )


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--small", action="store_true", help="2 sessions of 2 turns, once")
    parser.add_argument("--agent", choices=MODELS, default="codex")
    parser.add_argument("--many", type=int, default=16)
    parser.add_argument("--turns", type=int, nargs="+", default=[8, 60])
    parser.add_argument("--rounds", type=int, default=2)
    given = parser.parse_args()
    if given.small:
        given.many, given.turns, given.rounds = 2, [2], 1
    agent = installed_agent(given.agent)
    assert agent is not None
    sessions = [Sessions(agent=agent, many=given.many, turns=turns) for turns in given.turns]
    if not inspect(sessions[0].image) and pytest_super(["image", "build", "--agent", agent.name]):
        raise SystemExit(f"the image with {agent.name} cannot be built")
    found = {one.turns: compare(one, given.rounds) for one in sessions}
    report_added(found)
    report_memory(found[max(found)])


if __name__ == "__main__":
    main()
