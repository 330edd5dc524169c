"""A run on a terminal: what its trials wait for is shown, and named when the run is interrupted."""

import os
import re
import signal
import subprocess
import sys

import pytest

from tests.integration.conftest import Project
from tests.openai_server import OpenAIServer
from tests.terminals import Screen, Terminal, terminal

AGENT = """
import time
from pathlib import Path

class Agent:
    def run(self, trial):
        for _ in range(10):
            trial.execute("1")
        if trial.task.id == "asks":
            trial.complete([{"role": "user", "content": "what now?"}])
        while not Path("go").exists():
            time.sleep(0.01)
        trial.submit(42)
"""
MODEL = "--super-model=openai/gpt-4o"
WAIT = re.compile(r"  asks  \d+ s  step 11 after 10 equal ones, model: 429, waits \d+ s, try 2 of 8")


def start(project: Project, shown: Terminal, *arguments: str) -> subprocess.Popen[bytes]:
    """A run in the foreground of the terminal."""
    project.write("agent.py", AGENT)
    options = ("--super-agent=agent:Agent", "--super-sandbox=local")
    return subprocess.Popen(
        [sys.executable, "-m", "pytest", *options, *arguments],
        cwd=project.path,
        env={**os.environ, "TERM": "xterm"},
        stdin=subprocess.DEVNULL,
        stdout=shown.slave,
        stderr=shown.slave,
        start_new_session=True,
    )


@pytest.mark.slow
def test_silence_is_filled_and_the_output_of_pytest_stays_as_it_is(project: Project) -> None:
    project.add_task("waits")
    with terminal() as shown:
        process = start(project, shown)
        shown.wait_for(
            re.compile(r"0/1 done, 1 running, 0 solved\r\n  waits  \d+ s  step 11 after 10 equal ones, agent")
        )
        (project.path / "go").touch()
        assert process.wait(60) == 0
        screen = Screen(shown.join())
    assert re.search(r"\ntasks/waits.task.yaml \. +\[100%\]\n=+ super =+\n", screen.text)
    assert "running" not in screen.text


@pytest.mark.slow
def test_a_rate_limit_is_shown_while_it_lasts_and_named_when_it_is_interrupted(
    project: Project, openai_environment: OpenAIServer
) -> None:
    openai_environment.always(openai_environment.fault("429", retry_after=200))
    project.add_task("asks")
    with terminal() as shown:
        process = start(project, shown, MODEL, "-n1")
        shown.wait_for(WAIT)
        os.killpg(process.pid, signal.SIGINT)
        assert process.wait(60) == pytest.ExitCode.INTERRUPTED
        screen = Screen(shown.join())
    where = "step 11 after 10 equal ones, model: 429, waits [0-9]+ s, try 2 of 8"
    stopped = f"stopped asks: .*, at {where} .trials/asks/1.0."
    assert re.search(stopped, screen.text)
    assert not WAIT.search(screen.text)
