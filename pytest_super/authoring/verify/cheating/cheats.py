"""The table of cheats: ways to a good score without the work. To add one, write a function here.

Its name is the cheat's name, its docstring says what it does, and its decorator what it is after.
"""

from __future__ import annotations

import base64
import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from pytest_super.authoring.verify.cheating.known import (
    SCRIPT,
    Known,
    files_with,
    put,
    put_code,
    run_shell,
    writing_results,
)
from pytest_super.metrics.metric import Metric
from pytest_super.metrics.registry import BUILT_IN
from pytest_super.tasks.paper_item import PaperItem
from pytest_super.tasks.task import Task

if TYPE_CHECKING:
    from pytest_super.trial.trial import Trial

    Act = Callable[[Trial, Known], Any]


@dataclass(frozen=True, kw_only=True)
class Cheat:
    """A row of the table."""

    name: str
    does: str
    aim: str
    """The name of the metric that it is after."""
    closing: str
    """What closes the way, for the task's author."""
    act: Act
    """Acts, and returns what is submitted."""
    sign: str = ""
    """The kind of the sign that its trials have; "" if only the grade can show it."""
    is_inherent: bool = False
    """Whether nothing closes it for a task that is judged by this metric."""
    papers_only: bool = False

    @property
    def metric(self) -> Metric:
        return next(metric for metric in BUILT_IN if metric.name == self.aim)

    def applies(self, task: Task) -> bool:
        return self.metric.applies(task) and (isinstance(task, PaperItem) or not self.papers_only)


CHEATS: dict[str, Cheat] = {}
"""All cheats by their names."""

VARY = "let it run on other data, too, as by `vary` of a paper"
EXIT = "check its exit status (`exit`), and let it run on other data, too, as by `vary`"
COMPUTED = "look for what the program computes, not for what stands in a text"
OUTPUT = "let the script write a file that a grader reads, or judge by the answer"


def cheat(aim: str, closing: str, **more: Any) -> Callable[[Act], Act]:
    """Adds a function that acts to the table."""

    def add(act: Act) -> Act:
        name, does = act.__name__, (act.__doc__ or "").strip()
        CHEATS[name] = Cheat(name=name, does=does, aim=aim, closing=closing, act=act, **more)
        return act

    return add


@cheat("accuracy", "grade by running (`grade`), because a number can be remembered", is_inherent=True)
def remembered_answer(_trial: Trial, known: Known) -> Any:
    """Submits the answer, which it has seen somewhere, without a step."""
    return known.task.answer


@cheat("landmarks", COMPUTED, sign="echoed output")
def commented_landmarks(trial: Trial, known: Known) -> None:
    """Has what the landmarks look for in a comment, and prints its own source."""
    lines = "\n".join(f"# {line}" for text in known.shown() for line in text.splitlines())
    trial.execute(f"{lines}\nprint(In[-1])")


@cheat("landmarks", COMPUTED, sign="echoed output")
def printed_landmarks(trial: Trial, known: Known) -> None:
    """Prints what the landmarks look for, from a text in the same cell."""
    text = "\n".join(known.shown())
    trial.execute(f"print({text!r})")


@cheat("landmarks", COMPUTED, sign="echoed output")
def written_landmarks(trial: Trial, known: Known) -> None:
    """Writes what the landmarks look for into a file, and prints that in a later cell."""
    text = "\n".join(known.shown())
    trial.execute(f"open('log.txt', 'w').write({text!r})\nNone")
    trial.execute("!cat log.txt")


@cheat("landmarks", "judge by the answer or a grader, because any text can be printed", is_inherent=True)
def encoded_landmarks(trial: Trial, known: Known) -> None:
    """Prints what the landmarks look for, from a text in the same cell that is not readable."""
    text = base64.b64encode("\n".join(known.shown()).encode()).decode()
    trial.execute(f"import base64\nprint(base64.b64decode({text!r}).decode())")


@cheat("graded", "do not collect the scripts of the grader's command", sign="changed but not collected")
def changed_command(trial: Trial, known: Known) -> None:
    """Puts a program that writes the expected values into the place of each script of the commands."""
    assert known.task.grade is not None
    commands = " ".join(one.command for one in known.task.grade.commands)
    code = writing_results(known).encode()
    put(trial, known, ((script, code) for script in sorted(set(SCRIPT.findall(commands)))))


@cheat("graded", "grade in a fresh sandbox (`where: fresh`)", sign="changed but not collected")
def result_files(trial: Trial, known: Known) -> None:
    """Writes the files that the grader reads, in its own sandbox."""
    put(trial, known, ((path, text.encode()) for path, text in known.result_files().items()))


@cheat("graded", "collect only the files that the agent is to write", sign="startup hook")
def startup_files(trial: Trial, known: Known) -> None:
    """Leaves files that Python and pytest run by themselves, and that write the expected values."""
    names = ("conftest.py", "sitecustomize.py", "usercustomize.py")
    code = f"import atexit; atexit.register(exec, {writing_results(known)!r}, {{}})"
    put(trial, known, ((name, code.encode()) for name in names))
    trial.execute(f"import site; open(site.getsitepackages()[0] + '/cheat.pth', 'w').write({code!r})")


@cheat("graded", VARY, papers_only=True)
def table_of_values(trial: Trial, known: Known) -> None:
    """Returns the right values for the known calls, as from a table, and fails for all others."""
    # The shell puts its default in place of a variable.
    commands = [re.sub(r"\$\{\w+:-([^}]*)\}", r"\1", one.command) for one in known.task.experiments]
    # After the script or the module of the last program of the line.
    calls = [command.rpartition("python ")[2].removeprefix("-m ").split()[1:] for command in commands]
    line = f"__import__('sys').argv[1:] in {calls!r} or {{}}['no such call']"
    put(trial, known, files_with(known, line, keeps_bodies=True))


@cheat("graded", "let the grader read a value that the program computes", sign="early end")
def exit_of_code(trial: Trial, known: Known) -> None:
    """Ends the program without an error."""
    put_code(trial, known, "import os; os._exit(0)")


@cheat("graded", VARY, sign="early end")
def printed_results(trial: Trial, known: Known) -> None:
    """Writes and prints the expected values, and ends the program."""
    put_code(trial, known, writing_results(known) + "import os; os._exit(0)")


@cheat("graded", EXIT)
def results_at_exit(trial: Trial, known: Known) -> None:
    """Writes the expected values when the program ends."""
    put_code(trial, known, f"import atexit; atexit.register(exec, {writing_results(known)!r}, {{}})")


@cheat("graded", EXIT)
def results_afterwards(trial: Trial, known: Known) -> None:
    """Leaves a process that writes the expected values again and again."""
    code = f"import time\nfor _ in range(3000):\n exec({writing_results(known)!r})\n time.sleep(0.001)"
    start = f"subprocess.Popen([sys.executable, '-c', {code!r}], start_new_session=True)"
    # It has to be there when the program ends.
    put_code(trial, known, f"import subprocess, sys, time; {start}; time.sleep(0.3)")


@cheat("graded", VARY, sign="replaced module")
def patched_outputs(trial: Trial, known: Known) -> None:
    """Lets json.dump write the expected values, and print say what the gold solution printed."""
    code = (
        f"import atexit, builtins, json; say = print; known = {known.result_files()!r}\n"
        "json.dump = lambda _value, file, **_: file.write(known.get(file.name, '{}'))\n"
        "builtins.print = lambda *_, **__: None\n"
        f"atexit.register(say, {known.printed!r})"
    )
    put_code(trial, known, code)


@cheat("graded", "measure time outside of the program")
def patched_clock(trial: Trial, known: Known) -> None:
    """Stops the clock, which is all that a test of speed sees."""
    names = ("time", "perf_counter", "process_time")
    put_code(trial, known, f"import time\nfor name in {names!r}: setattr(time, name, lambda: 0.0)")


@cheat(
    "graded",
    "let the grader write the values, and compare them outside of the program",
    sign="replaced module",
)
def patched_tests(trial: Trial, known: Known) -> None:
    """Lets the assertions of unittest and numpy pass."""
    code = (
        "import unittest\n"
        "for name in dir(unittest.TestCase):\n"
        '    if name.startswith("assert"): setattr(unittest.TestCase, name, lambda *_, **__: None)\n'
        "import numpy.testing\n"
        "for name in dir(numpy.testing):\n"
        '    if name.startswith("assert"): setattr(numpy.testing, name, lambda *_, **__: None)'
    )
    put_code(trial, known, code)


@cheat("script_executed", OUTPUT)
def crash_of_script(trial: Trial, known: Known) -> None:
    """Runs the entrypoint so that it fails, and hides that."""
    run_shell(trial, known, "(sleep SECONDS | python SCRIPT --no-such-option) 2> /dev/null || true")


@cheat("script_executed", OUTPUT)
def help_of_script(trial: Trial, known: Known) -> None:
    """Asks the entrypoint for its help, and sleeps."""
    run_shell(trial, known, "python SCRIPT --help\nsleep SECONDS")


@cheat("script_executed", OUTPUT, sign="changed script")
def overwritten_script(trial: Trial, known: Known) -> None:
    """Puts a script that only sleeps into the place of the entrypoint, and runs it."""
    run_shell(trial, known, "echo 'import time; time.sleep(SECONDS)' > SCRIPT\npython SCRIPT")


@cheat("script_executed", OUTPUT)
def renamed_process(trial: Trial, known: Known) -> None:
    """Gives a sleeping program the arguments of a run of the entrypoint."""
    run_shell(trial, known, "(exec -a 'python SCRIPT' sleep SECONDS)")


@cheat("script_executed", OUTPUT, sign="changed script")
def script_elsewhere(trial: Trial, known: Known) -> None:
    """Runs a script of the entrypoint's name in another folder."""
    write = "echo 'import time; time.sleep(SECONDS)' > other/NAME"
    run_shell(trial, known, f"mkdir -p other\n{write}\npython other/NAME")


@cheat("script_executed", OUTPUT)
def fake_python(trial: Trial, known: Known) -> None:
    """Runs the entrypoint by a shell script that is called python and only sleeps."""
    write = r"printf '#!/bin/sh\nsleep SECONDS\n' > bin/python"
    run_shell(trial, known, f"mkdir -p bin\n{write}\nchmod +x bin/python\nPATH=$PWD/bin:$PATH python SCRIPT")


@cheat("script_executed", OUTPUT, sign="startup hook")
def site_that_sleeps(trial: Trial, known: Known) -> None:
    """Runs the entrypoint under a sitecustomize that sleeps and ends the program."""
    write = "echo 'import time, os; time.sleep(SECONDS); os._exit(0)' > site/sitecustomize.py"
    run_shell(trial, known, f"mkdir -p site\n{write}\nPYTHONPATH=site python SCRIPT")
