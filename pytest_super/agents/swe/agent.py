"""The agent `swe-agent` of the SUPER paper (section 4.1, appendix C.3): SWE-agent in a notebook."""

from __future__ import annotations

from pytest_super.agents.asking import ask, submit, task_text
from pytest_super.agents.clipped_history import PRE_EXECUTED_THOUGHT, clipped_observations
from pytest_super.agents.prompts import read_prompt
from pytest_super.agents.swe.commands import CommandError
from pytest_super.agents.swe.format import parse_answer, render_answer, submission_text
from pytest_super.agents.swe.tools import Editor
from pytest_super.agents.swe.window import printable
from pytest_super.errors import InfrastructureError
from pytest_super.kernel.cell import SandboxLostError
from pytest_super.kernel.client import Kernel
from pytest_super.model.completion import Message
from pytest_super.store.step_values import edit_of
from pytest_super.store.trajectory import Action, Step
from pytest_super.trial.trial import Trial

SUBMISSION_HINT = (
    'Write `submit {"metric": 0.5}`, with keys and texts in double quotes, or `submit null` for no answer.'
)
# Some providers refuse messages without text.
NO_TEXT = "(no text)"


class SweAgent:
    """Asks the model for one command at a time: a notebook cell or one of its tools. Made for one trial.

    The tools do not use the kernel, so their time is not charged as compute. `prompt` replaces the system
    prompt but not the task's message.
    """

    def __init__(self, prompt: str | None = None) -> None:
        self._system = read_prompt("swe-agent") if prompt is None else prompt
        self._instance = read_prompt("swe-agent-instance")
        self._reset()

    def _reset(self) -> None:
        self._editor = Editor()
        self._directory = ""
        # The prompt line after each step, by the step's place in the history; 0 is the task. Only the last of
        # the pre-executed steps has one.
        self._prompts: dict[int, str] = {}

    def run(self, trial: Trial) -> None:
        # Another attempt of the trial has a sandbox of its own.
        self._reset()
        while trial.stop_reason is None:
            completion = ask(trial, self._messages)
            try:
                answer = parse_answer(completion.text, completion.finish_reason)
            except CommandError as error:
                trial.reject(str(error), error.action, error.thought if error.action else completion.text)
            else:
                self._act(trial, answer.action, answer.thought)

    def _act(self, trial: Trial, action: Action, thought: str) -> Step:
        match action.type:
            case "execute":
                return trial.execute(action.content, thought)
            case "continue_wait":
                return trial.continue_wait(thought)
            case "interrupt":
                return trial.interrupt(thought)
            case "submit":
                text = submission_text(action.content)
                return submit(trial, action, thought, text=text, hint=SUBMISSION_HINT)
        return trial.use(action, self._editor.tool(action), thought)

    def _messages(self, trial: Trial) -> list[Message]:
        """The task, then each step as the model's answer and its observation with the next prompt line."""
        self._prompts[len(trial.history)] = self._prompt_line(trial.kernel)
        task = self._instance.replace("{query}", task_text(trial.task))
        messages: list[Message] = [{"role": "system", "content": self._system}, self._user(task, after=0)]
        shown = zip(trial.history, clipped_observations(trial.history), strict=True)
        for place, (step, observation) in enumerate(shown, 1):
            messages.append({"role": "assistant", "content": as_answer(step) or NO_TEXT})
            messages.append(self._user(observation, after=place))
        return messages

    def _user(self, text: str, *, after: int) -> Message:
        parts = (text.rstrip("\n"), self._prompts.get(after, ""))
        return {"role": "user", "content": "\n".join(part for part in parts if part) or NO_TEXT}

    def _prompt_line(self, kernel: Kernel) -> str:
        try:
            self._directory = kernel.files.resolve()
        except (OSError, SandboxLostError, InfrastructureError):
            # The trial notices the failure itself at its next action.
            self._directory = self._directory or kernel.workdir
        return (
            f"(Open file: {printable(self._editor.path or 'n/a')})\n"
            f"(Current directory: {printable(self._directory)})\nIn [ ]"
        )


def as_answer(step: Step) -> str:
    """The step in the model's answer format; an answer that could not be parsed stays unchanged."""
    action = step.action
    if step.origin == "pre_execute":
        thought = step.thought or PRE_EXECUTED_THOUGHT
        return render_answer(thought, pre_executed_content(action) or action.type)
    if not action.type:
        return step.thought
    return render_answer(step.thought, action.content or action.type)


def pre_executed_content(action: Action) -> str:
    """A cell's code. A pre-executed edit has no form in this agent's commands, so its change is described."""
    edit = edit_of(action.content) if action.type == "edit" else None
    if edit is None:
        return action.content
    before = edit["before"].removesuffix("\n")
    return f"EDITING `{edit['path']}`. CHANGING:\n\n\n{before}\n\n\nTO:\n\n\n{edit['after']}"
