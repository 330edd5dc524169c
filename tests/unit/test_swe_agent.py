"""The agent `swe-agent`: what it asks the model, and what it makes of the answers."""

import json
import re
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from pytest_super.agents.prompts import read_prompt
from pytest_super.agents.swe.agent import SweAgent
from pytest_super.agents.swe.commands import ARGUMENTS, WAITING
from pytest_super.agents.swe.format import parse_answer
from pytest_super.model.completion import Completion, FilteredError
from pytest_super.store.trajectory import Action, Step
from pytest_super.testing import FakeModel
from tests.unit.folder_kernel import FolderKernel
from tests.unit.test_trial import Failing, TrialBench


def say(command: str, thought: str = "so") -> str:
    return f"DISCUSSION\n{thought}\n```\n{command}\n```"


class Tools(TrialBench):
    """A trial in a folder, with a model that gives the answers."""

    kernel: FolderKernel

    def __init__(self, folder: Path, *answers: str | Completion, task: dict[str, Any] | None = None) -> None:
        self.model = FakeModel(*answers)
        fields = {"query": "Do {it}.", **(task or {})}
        super().__init__(10**9, model=self.model, kernel=FolderKernel(folder), task=fields, cell=300)

    def ask(self, prompt: str | None = None) -> str:
        return self.run(SweAgent(prompt).run)

    @property
    def steps(self) -> list[tuple[str, str]]:
        return [(step.action.type, step.outcome) for step in self.trial.history]

    def said(self, request: int = -1, message: int = -1) -> str:
        """A message's text, by default the last that the model was told."""
        return str(self.model.requests[request][message]["content"])


@pytest.fixture
def bench(tmp_path: Path) -> Callable[..., Tools]:
    return lambda *answers, **options: Tools(tmp_path, *answers, **options)


def test_it_reads_edits_runs_and_submits(bench: Callable[..., Tools], tmp_path: Path) -> None:
    (tmp_path / "a.py").write_text("x = 1\n")
    run = bench(
        say("open a.py", "I look."),
        say("edit 1:1\nx = 2\nend_of_edit"),
        say("print(open('a.py').read() if False else 21 * 2)"),
        say('submit {"x": 42}', "Done."),
    )
    assert run.ask() == "submitted"
    assert run.trial.submission == {"x": 42}
    assert (tmp_path / "a.py").read_text() == "x = 2\n"
    assert run.steps == [("open", "ok"), ("edit", "ok"), ("execute", "ok"), ("submit", "ok")]
    assert [step.thought for step in run.trial.history] == ["I look.", "so", "so", "Done."]
    assert run.trial.history[0].action.content == "open a.py"


def test_the_model_is_asked_as_in_the_paper(bench: Callable[..., Tools]) -> None:
    repository = {"git": "https://a.b/c", "commit": "0" * 40}
    run = bench(say("print(1)"), say("submit 1"), task={"repository": repository})
    run.ask()
    assert run.model.parameters == [{"temperature": 0.2, "max_tokens": 1500}] * 2
    assert [message["role"] for message in run.model.requests[1]] == ["system", "user", "assistant", "user"]
    assert run.model.requests[1][:2] == run.model.requests[0]
    assert f"TASK:\nDo {{it}}.\nGit repository: https://a.b/c\nCommit: {'0' * 40}\n" in run.said(0)
    assert run.said(0).endswith(f"\n(Open file: n/a)\n(Current directory: {run.kernel.folder})\nIn [ ]")
    assert run.said(1, 2) == say("print(1)")
    assert run.said(1) == f"1\n(Open file: n/a)\n(Current directory: {run.kernel.folder})\nIn [ ]"


def test_the_prompt_line_tells_the_open_file_and_the_directory_of_cells(
    bench: Callable[..., Tools], tmp_path: Path
) -> None:
    (tmp_path / "sub").mkdir()
    (tmp_path / "sub" / "a").write_text("x\n")
    run = bench(say("cd('sub')"), say("open a"), say("submit 1"))
    run.ask()
    folder = run.kernel.folder
    assert run.said(2, 3) == f"(Open file: n/a)\n(Current directory: {folder}/sub)\nIn [ ]"
    assert run.said(2).endswith(f"\n(Open file: {folder}/sub/a)\n(Current directory: {folder}/sub)\nIn [ ]")


def test_earlier_observations_are_shown_by_their_ends(bench: Callable[..., Tools]) -> None:
    run = bench(say("print('a' * 60_000)"), say("print('b' * 600)"), say("submit 1"))
    run.ask()
    assert run.said(1).startswith("... (truncated) ...a")
    assert run.said(1).count("a") > 49_990
    assert run.said(2, 3).partition("\n")[0] == "(truncated) ... " + "a" * 499
    assert run.said(2).partition("\n")[0] == "b" * 600


def test_what_was_pre_executed_has_its_fixed_thought_by_its_origin(bench: Callable[..., Tools]) -> None:
    edit = json.dumps({"path": "a.py", "before": "x = 1\n", "after": "{y}\n"})
    run = bench(say("print(2)", "[pre-executed by user]\n\n"), say("submit 1"))
    for type, content in (("execute", "!ls"), ("edit", edit)):
        action = Action(type=type, content=content)
        run.trial.add_pre_executed(Step(number=1, origin="pre_execute", action=action, observation="seen\n"))
    run.ask()
    assert run.said(1, 2) == say("!ls", "[pre-executed by user]")
    assert run.said(1, 3) == "seen"
    assert run.said(1, 4) == say(
        "EDITING `a.py`. CHANGING:\n\n\nx = 1\n\n\nTO:\n\n\n{y}\n", "[pre-executed by user]"
    )
    assert run.said(1, 5).startswith("seen\n(Open file: n/a)\n")
    assert run.said(1, 6) == say("print(2)", "[pre-executed by user]")
    assert run.trial.history[2].origin == "agent"


def test_another_prompt_takes_the_place_of_the_systems(bench: Callable[..., Tools]) -> None:
    run = bench(say("submit 1"))
    run.ask(prompt="Be {WINDOW} quick.")
    assert run.said(0, 0) == "Be {WINDOW} quick."
    assert "Do {it}." in run.said(0, 1)


# Answers that are no command


def test_an_answer_that_cannot_be_read_is_told_what_is_wanted_and_shown_again(
    bench: Callable[..., Tools],
) -> None:
    run = bench("I would look.", "", say("edit 1:2\nx", "I change."), say("submit 1"))
    assert run.ask() == "submitted"
    assert run.steps == [("", "error"), ("", "error"), ("edit", "error"), ("submit", "ok")]
    assert "DISCUSSION\n...\n```\nthe command\n```\n(Open file: n/a)" in run.said(1)
    assert run.said(3, 2) == "I would look."
    assert run.said(3, 4) == "(no text)"
    assert run.said(3, 6) == say("edit 1:2\nx", "I change.")
    assert "does not end" in run.said(3)


def test_an_answer_that_was_cut_is_not_carried_out(bench: Callable[..., Tools], tmp_path: Path) -> None:
    cut = Completion(text=say("create a.py"), finish_reason="length")
    run = bench(cut, say("submit 1"))
    run.ask()
    assert run.steps == [("", "error"), ("submit", "ok")]
    assert "cut off" in run.said(1)
    assert list(tmp_path.iterdir()) == []


def test_a_submission_that_is_no_json_is_told_and_the_trial_goes_on(bench: Callable[..., Tools]) -> None:
    run = bench(say("submit {a: 1}"), say("submit null"))
    assert run.ask() == "submitted"
    assert run.trial.submission is None
    assert run.steps == [("submit_invalid_json", "error"), ("submit", "ok")]
    assert run.said(1, 2) == say("submit {a: 1}")
    assert "not JSON" in run.said(1)


def test_a_command_that_cannot_be_done_is_told_and_the_trial_goes_on(bench: Callable[..., Tools]) -> None:
    run = bench(say("open gone.py"), say("search_file don't"), say("submit 1"))
    run.ask()
    assert run.steps == [("open", "error"), ("search_file", "error"), ("submit", "ok")]
    assert run.said(1).startswith("File gone.py not found\n(Open file: n/a)")


# Cells past their limit


def test_a_cell_past_its_limit_is_waited_for_or_interrupted_and_nothing_else_is_done(
    bench: Callable[..., Tools], tmp_path: Path
) -> None:
    (tmp_path / "a").write_text("x\n")
    commands = ["sleep(700)", "open a", "print(1)", "continue_wait", 'action: {"type": "interrupt"}']
    run = bench(*map(say, commands), say("interrupt"), say("submit 1"))
    run.ask()
    ends = ["timed_out", "error", "error", "timed_out", "interrupted", "error", "ok"]
    assert [outcome for _, outcome in run.steps] == ends
    assert "still running" in run.said(2)
    assert run.said(4, -2) == say("continue_wait")
    assert run.said(5, -2) == say("interrupt")


# What ends a trial


def test_a_provider_that_refuses_once_is_asked_again_with_less(
    bench: Callable[..., Tools], monkeypatch: pytest.MonkeyPatch
) -> None:
    run = bench(say("print('a' * 600)"), say("submit 1"))
    complete, calls = run.model.complete, iter((1, 2, 3))

    def refuse_second(*arguments: Any, **parameters: Any) -> Completion:
        if next(calls) == 2:
            raise FilteredError("no")
        return complete(*arguments, **parameters)

    monkeypatch.setattr(run.model, "complete", refuse_second)
    assert run.ask() == "submitted"
    assert run.steps == [("execute", "ok"), ("", "error"), ("submit", "ok")]
    assert run.said(1, 3).startswith("(truncated) ... aaa")


def test_a_provider_that_refuses_always_ends_the_trial(bench: Callable[..., Tools]) -> None:
    run = bench()
    run.trial.model = Failing(FilteredError("no"))
    assert run.ask() == "agent_error"
    assert run.steps == [("", "error")]


# The prompt


def test_the_prompt_names_every_command_and_its_demonstrations_are_answers() -> None:
    prompt = read_prompt("swe-agent")
    assert all(f"\n{name}" in prompt for name in (*ARGUMENTS, *WAITING))
    answers = re.findall(r"^DISCUSSION\n.*?\n```\n.*?\n```$", prompt, re.MULTILINE | re.DOTALL)
    types = Counter(parse_answer(answer).action.type for answer in answers)
    assert types == {"execute": 5, "open": 2, "edit": 1, "submit": 3}
