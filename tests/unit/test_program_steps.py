"""Steps of a program's calls of its model: which call a result belongs to, and which step a landmark."""

import json
from typing import Any

import pytest

from pytest_super.metrics.matching.landmark_matcher import LandmarkMatcher
from pytest_super.model.completion import Usage
from pytest_super.store.trajectory import Action, Step
from pytest_super.tasks.task import Limits
from pytest_super.trial.budget import Budget
from pytest_super.trial.program_steps import UNSEEN, ProgramSteps
from pytest_super.trial.step_log import StepLog

TOKENS = Usage(prompt_tokens=10, completion_tokens=1)


class Program:
    """A program whose model's answers are given. Its steps are recorded."""

    def __init__(self, *landmarks: str, query: str = "do it") -> None:
        self.budget = Budget(Limits(), tokens=10**9, clock=lambda: 0.0)
        self.landmarks = LandmarkMatcher(landmarks)
        self.recorded: list[Step] = []
        self.log = StepLog(self.recorded.append, self.budget, self.landmarks)
        self.steps = ProgramSteps(self.log, self.landmarks, query)

    def answer(self, *commands: str, id: str = "call_0", thread: str = "main", **results: str) -> None:
        """One answer of the model, with a call for each of `commands`; `results` are by the call's id."""
        calls = [
            {"id": id, "name": "shell", "arguments": json.dumps({"command": command})} for command in commands
        ]
        self.exchange(calls, thread, results)

    def exchange(self, calls: list[dict[str, str]], thread: str, results: dict[str, str]) -> None:
        told: dict[str, Any] = {"thread": thread, "results": results, "tool_calls": calls}
        self.budget.charge_call(TOKENS, 0.0)
        self.steps.take({**told, "thought": "", "text": "said"}, TOKENS, "")

    def end(self) -> Step:
        """Write the program's own step."""
        self.landmarks.end_cell()
        return self.log.add(Action(type="command"), "", "", observation="")

    @property
    def told(self) -> list[tuple[str, str]]:
        """The command and the result of each call of a tool."""
        calls = [step for step in self.recorded if step.action.type == "tool_call"]
        return [(command_of(step), step.observation) for step in calls]

    @property
    def credited(self) -> list[tuple[int, int | None]]:
        """For each landmark the step that has it, and the step that is said to have found it."""
        having = {index: step.number for step in self.recorded for index in step.landmarks}
        return [(having.get(n, 0), found.step) for n, found in enumerate(self.landmarks.landmarks)]


def command_of(step: Step) -> str:
    command = json.loads(json.loads(step.action.content)["arguments"])["command"]
    assert isinstance(command, str)
    return command


def test_a_call_that_is_answered_after_the_programs_end_is_not_told() -> None:
    program = Program()
    with program.steps.of("agent"):
        program.answer("one")
    own = program.end()
    program.answer()
    later = program.log.add(Action(type="submit"), "", "", observation="")
    assert program.recorded[-2:] == [own, later]
    assert (later.prompt_tokens, later.completion_tokens) == (10, 1)


def test_ids_that_a_server_uses_again_in_each_answer_lose_no_call() -> None:
    program = Program()
    with program.steps.of("agent"):
        program.answer("one")
        program.answer("two", call_0="1")
        # The program has left the second result out.
        program.answer("three")
        program.answer(call_0="3")
    assert program.told == [("one", "1"), ("two", UNSEEN), ("three", "3")]


def test_calls_of_one_answer_that_have_the_same_id_are_told_in_their_order() -> None:
    program = Program()
    with program.steps.of("agent"):
        program.answer("one", "two", "three", id="None")
        program.exchange([], "main", {"None": "1"})
    assert program.told == [("one", "1"), ("two", UNSEEN), ("three", UNSEEN)]
    assert sum(step.prompt_tokens for step in program.recorded) == 20


def test_a_landmark_belongs_to_the_step_whose_output_has_it() -> None:
    program = Program("printed by the program", "shown by a tool", "the end$")
    with program.steps.of("agent"):
        program.answer("one")
        program.landmarks.feed("printed by the program\n" + "x" * 300_000)
        program.answer("two", call_0="nothing")
        program.answer("three", call_0="shown by a tool")
        program.landmarks.feed("the end")
    own = program.end()
    assert program.credited == [(own.number, own.number), (2, 2), (own.number, own.number)]


@pytest.mark.parametrize(
    ("command", "result", "landmark"),
    [
        ("python -c \"print('✓ accuracy 0.9')\"", "✓ accuracy 0.9\n", r"✓ accuracy [\d.]+"),
        (r'echo "acc = \"0.9\""', 'acc = "0.9"\n', r'acc = "[\d.]+"'),
        ("cat <<E\nepoch 1\nacc 0.9\nE", "epoch 1\nacc 0.9\n", r"epoch 1 acc [\d.]+"),
    ],
)
def test_what_a_call_says_itself_is_no_landmark(command: str, result: str, landmark: str) -> None:
    program = Program(landmark)
    with program.steps.of("agent"):
        program.answer(command)
        # As the program prints its call, and what the tool has printed.
        program.landmarks.feed(f"$ {command}\n{result}")
        program.answer(call_0=result)
    program.end()
    assert program.landmarks.hits == [False]


def test_a_landmark_after_the_same_text_of_a_call_is_found() -> None:
    program = Program(r"accuracy [\d.]+", "loss 1")
    with program.steps.of("agent"):
        program.answer("echo accuracy 0.1; python train.py")
        program.landmarks.feed("$ echo accuracy 0.1; python train.py\naccuracy 0.1\nloss 1\n")
        program.answer(call_0="accuracy 0.1\naccuracy 0.9\n")
    own = program.end()
    assert program.credited == [(1, 1), (own.number, own.number)]
    assert [found.is_echo for found in program.landmarks.landmarks] == [False, False]


def test_what_the_task_and_the_command_say_is_no_landmark() -> None:
    program = Program("report accuracy", "--train", query="Do report accuracy.")
    with program.steps.of("agent --train"):
        program.landmarks.feed("Task: Do report accuracy.\n+ agent --train\n")
    program.end()
    assert program.landmarks.hits == [False, False]


def test_arguments_that_are_no_json_are_their_own_source() -> None:
    program = Program("accuracy 9", "loss 1")
    with program.steps.of("agent"):
        program.exchange([{"id": "a", "name": "shell", "arguments": "echo accuracy 9"}], "main", {})
        program.exchange([], "main", {"a": "accuracy 9, loss 1"})
    assert program.landmarks.hits == [False, True]


def test_what_no_tool_has_printed_has_no_landmarks() -> None:
    program = Program("request has shown", "^$")
    with program.steps.of("agent"):
        program.answer()
        program.answer("one")
    assert [step.landmarks for step in program.recorded] == [[], []]
    assert program.landmarks.hits == [False, False]
