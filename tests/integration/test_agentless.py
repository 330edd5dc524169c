"""The agent agentless: one generation for each missing function, the commands once, and a report."""

from collections.abc import Sequence
from typing import Any

import pytest
import yaml

from pytest_super.functions.masking import mask_file
from pytest_super.functions.source import PythonSource
from tests.conftest import read_lines
from tests.integration.conftest import Folder, asked_in

CODE = '''\
class Stats:
    def __init__(self, values):
        self.values = values

    def mean(self):
        """The mean."""
        return total(self.values) / len(self.values)

    @property
    def middle(self):
        return self.mean()

    @middle.setter
    def middle(self, value):
        self.values = [value]


def total(values):
    result = 0
    # region loop
    for value in values:
        result += value
    # endregion
    return result
'''
RUN = "import stats\nprint('mean =', stats.Stats([1, 2, 6]).mean())\n"
OTHER = "def helper_of_totals(values):\n    '''Adds up a total.'''\n\n\ndef nothing_to_do():\n    pass\n"
TARGETS = ("Stats.mean", "total", "total@loop", "Stats.middle#2")
MEAN = "It is a quotient.\n```python\ndef mean(self):\n    return total(self.values) / len(self.values)\n```"
TOTAL = "```\ndef total(values):\n  return sum(values)\n```\n"
REPORT = '```json\n{"quality": 3.0}\n```'


@pytest.fixture
def project(pytester: pytest.Pytester) -> Folder:
    made = Folder(pytester, "super_sandbox = local\n")
    for name, text in {"stats": CODE, "run": RUN, "other": OTHER}.items():
        made.write(f"project/{name}.py", text)
    made.write("paper.md", "Weather is nice.\n\nA total adds up values.\n\nMore weather.\n")
    names = TARGETS[:2] + TARGETS[3:]
    source = PythonSource.read("stats.py", CODE.encode())
    digests = {one.name: one.sha256 for one in mask_file(source, names).functions}
    digests |= {one.name: one.sha256 for one in mask_file(source, TARGETS[2:3]).functions}
    task = {
        "id": "paper",
        "set": "functions",
        "query": "Statistics.",
        "paper": {"file": "paper.md"},
        "repository": {"path": "project", "provide": True},
        "functions": [
            {"target": f"stats.py::{name}", "sha256": digests[name], "passage": f"The passage of {name}."}
            for name in TARGETS
        ],
        "experiments": [
            {
                "name": "quality",
                "command": "python run.py",
                "result": [{"regex": {"pattern": "mean = (.*)"}, "expected": 3.0}],
            }
        ],
    }
    made.write("paper.task.yaml", task)
    return made


def run(
    project: Folder, item: str, answers: Sequence[str], *options: str
) -> tuple[dict[str, Any], list[dict[str, Any]], list[str]]:
    """The item's result, the agent's steps, and the user messages of its calls."""
    project.write("script.yaml", yaml.safe_dump(list(answers)))
    project.pytester.runpytest(
        "--super-agent=agentless",
        f"--super-model=scripted:{project.path}/script.yaml",
        f"paper.task.yaml::paper_{item}",
        *options,
    )
    run = project.latest
    (row,) = project.rows
    steps = read_lines(run / row["folder"] / "trajectory.jsonl")
    prompts = [request["messages"][-1]["content"] for request in asked_in(run / row["folder"])]
    return row, [step for step in steps if step["origin"] == "agent"], prompts


def test_every_missing_function_is_written_and_the_report_is_submitted(project: Folder) -> None:
    row, steps, prompts = run(project, "0,1", [MEAN, TOTAL, REPORT])
    assert (row["error"], row["agent_error"], row["solved"]) == (None, None, True)
    assert row["metrics"]["self_report"] == 1.0
    assert row["whole_file"] is None
    assert [step["action"]["type"] for step in steps] == ["edit", "edit", "execute", "submit"]
    assert "mean = 3.0" in steps[2]["observation"]
    assert "Write `Stats.mean`" in prompts[0]
    # The second function is written in the file that has the first.
    assert "return total(self.values) / len(self.values)" in prompts[1]
    assert "The experiment quality printed:\nmean = 3.0" in prompts[2]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("answer", "why"),
    [
        ("I cannot do this.", "the answer has no definition of `total`"),
        ("```python\ndef total(values:\n```", "it cannot be parsed"),
        ("```python\ndef totals(values):\n    return 1\n```", "the answer has no definition of `total`"),
    ],
)
def test_an_answer_without_the_function_is_rejected_and_the_trial_goes_on(
    project: Folder, answer: str, why: str
) -> None:
    row, steps, _ = run(project, "1", [answer, "The mean is 3."])
    assert (row["error"], row["solved"], row["submitted"]) == (None, False, True)
    assert why in steps[0]["observation"]
    assert steps[0]["thought"] == answer
    assert "NotImplementedError" in steps[1]["observation"]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("retrieval", "there", "not_there"),
    [
        ("oracle", ["The passage of total."], ["adds up", "helper_of_totals"]),
        ("search", ["A total adds up values.", "# other.py\ndef helper_of_totals"], ["The passage of"]),
        ("none", [], ["The passage of", "adds up", "helper_of_totals"]),
    ],
)
def test_the_prompt_has_what_the_retrieval_finds(
    project: Folder, retrieval: str, there: list[str], not_there: list[str]
) -> None:
    _, _, prompts = run(project, "1", [TOTAL, REPORT], f"--super-retrieval={retrieval}")
    assert all(text in prompts[0] for text in there), prompts[0]
    assert not any(text in prompts[0] for text in not_there), prompts[0]


def test_the_prompt_is_cut_around_the_function(project: Folder) -> None:
    many = "".join(f"def other_{number}():\n    pass\n\n\n" for number in range(100))
    stats = project.path / "project/stats.py"
    stats.write_text(f"{many}{stats.read_text()}\n\n{many.replace('other', 'later')}")
    project.write("paper.md", "A total adds up values, and then all of them again.\n" * 50)
    _, _, prompts = run(project, "1", [TOTAL, REPORT], "--super-retrieval=search:200")
    (cut,) = [part for part in prompts[0].split("\n\nWrite ") if part.startswith("`total`")]
    assert "def total(values):" in cut
    assert "other_0()" not in cut
    assert "later_99()" not in cut
    found = prompts[0][prompts[0].index("From the paper:") :]
    assert "all of them again" in found
    # 200 tokens, and what says how much was left out.
    assert len(found) < 800 + 200


@pytest.mark.parametrize("wrong", ["serch", "search:", "none:0", "oracle:x"])
def test_a_retrieval_that_does_not_exist_is_refused(project: Folder, wrong: str) -> None:
    result = project.pytester.runpytest(
        "--super-agent=agentless", f"--super-retrieval={wrong}", "paper.task.yaml"
    )
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stderr.fnmatch_lines([f"ERROR: --super-retrieval={wrong}: must be *"])


def test_tasks_without_missing_functions_are_skipped(project: Folder) -> None:
    task = {"id": "other", "set": "expert", "query": "q", "answer": 1}
    project.write("paper.task.yaml", yaml.safe_dump(task))
    project.write("script.yaml", "[a]")
    model = f"--super-model=scripted:{project.path}/script.yaml"
    project.pytester.runpytest("--super-agent=agentless", model, "paper.task.yaml").assert_outcomes(skipped=1)


def test_agentless_needs_a_model(project: Folder) -> None:
    result = project.pytester.runpytest("--super-agent=agentless", "paper.task.yaml")
    assert result.ret == pytest.ExitCode.USAGE_ERROR


@pytest.mark.slow
def test_the_model_chooses_among_epochs_without_the_gold(project: Folder) -> None:
    # Each trial and the choice begin with the first answer: a solution, and the number of a version.
    answers = [TOTAL + "\nVersion 2", REPORT]
    project.write("script.yaml", yaml.safe_dump(answers))
    model = f"--super-model=scripted:{project.path}/script.yaml"
    result = project.pytester.runpytest(
        *("--super-agent=agentless", model, "--super-epochs=3", "--super-select=model"),
        "paper.task.yaml::paper_1",
    )
    result.stdout.fnmatch_lines(
        [
            "pass@1 1.000  pass@2 1.000  pass@3 1.000  pass^3 1.000 (over 1 task)*",
            "chosen by execution: 1.000",
            "chosen by the model: 1.000",
        ]
    )
    (asked,) = choices_in(project)
    assert asked.count("return sum(values)") == 3
    assert "Version 3:" in asked
    assert "What the experiments yield:\nquality: mean = (.*): 3.0" in asked
    assert "expected" not in asked


def choices_in(project: Folder) -> list[str]:
    """The prompts by which a model chooses among the versions of a function."""
    trials = (path.parent for path in (project.latest / "trials").rglob("answers.jsonl"))
    prompts = [request["messages"][-1]["content"] for trial in trials for request in asked_in(trial)]
    return [prompt for prompt in prompts if prompt.startswith("Several programmers")]


@pytest.mark.parametrize("options", [("--super-epochs=2",), ("--super-model=m",)])
def test_a_choice_by_a_model_needs_a_model_and_epochs(project: Folder, options: tuple[str, ...]) -> None:
    result = project.pytester.runpytest(
        "--super-agent=gold", "--super-select=model", *options, "paper.task.yaml"
    )
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stderr.fnmatch_lines("*--super-select=model needs --super-model and several --super-epochs*")
