"""A run whose agents get the recorded answers of an earlier one."""

import json
from pathlib import Path
from typing import Any

import pytest

from pytest_super.cli import main
from pytest_super.store.answers import read_answers
from tests.integration.conftest import Project, read_lines
from tests.openai_server import KEY, OpenAIServer

MODEL = "--super-model=openai/gpt-4o"
FAIL = ("--super-answers=first", "--super-answers-miss=fail")
# Says what the file says, one request after the other; a line with a number begins a new conversation.
TALKER = """
import json
from pathlib import Path

class Agent:
    def run(self, trial):
        said = json.loads(Path(f"{trial.task.id}.json").read_text())
        for text in said:
            if text.startswith("new "):
                messages = []
            messages.append({"role": "user", "content": text})
            answer = trial.complete(messages, temperature=0.5).text
            trial.execute(f"print({answer!r})")
            messages.append({"role": "assistant", "content": answer})
        trial.submit(answer)
"""
# Says what its cell shows: the folder of the sandbox, and a warning with the path of the cell.
WARNED = """
class Agent:
    def run(self, trial):
        seen = trial.execute("import os, warnings; print(os.getcwd()); warnings.warn('late')").observation
        assert "/work" in seen and "UserWarning: late" in seen
        trial.submit(trial.complete([{"role": "user", "content": seen}]).text)
"""


class TalkingProject(Project):
    def __init__(self, pytester: pytest.Pytester) -> None:
        super().__init__(pytester)
        self.write("agent.py", TALKER)

    def add_talk(self, id: str, *said: str, answer: Any = "2", **fields: Any) -> None:
        self.add_task(id, answer=answer, **fields)
        self.say(id, *said)

    def say(self, id: str, *said: str) -> None:
        self.write(f"{id}.json", json.dumps(said))

    def record(self, *arguments: str) -> dict[str, dict[str, Any]]:
        """The results of a run that becomes `first`."""
        self.run(MODEL, *arguments)
        self.latest.resolve().rename(self.path / ".super/runs/first")
        rows = read_lines(self.path / ".super/runs/first/results.jsonl")
        return {f"{row['id']}[{row['epoch']}]": row for row in rows}

    def answers(self, trial: str = "a/1.0", run: str = "latest") -> Path:
        return self.path / f".super/runs/{run}/trials/{trial}/answers.jsonl"


@pytest.fixture
def talking(pytester: pytest.Pytester, openai_environment: OpenAIServer) -> TalkingProject:
    # The server's answers are numbers, from 1 on.
    openai_environment.by(lambda _: str(len(openai_environment.requests)))
    return TalkingProject(pytester)


FIGURES = ("solved", "prompt_tokens", "completion_tokens", "cached_tokens", "cost_usd", "steps", "model")


def test_a_run_with_recorded_answers_needs_no_key_and_no_provider(
    talking: TalkingProject, openai_environment: OpenAIServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    talking.add_talk("a", "new one", "two")
    talking.add_talk("b", "new one", "two", "three", answer="5")
    first = talking.record("--super-epochs=2")
    asked = len(openai_environment.requests)
    monkeypatch.delenv("OPENAI_API_KEY")
    openai_environment.always(openai_environment.fault("500"))
    result = talking.run(*FAIL, "--super-epochs=2")
    result.stdout.fnmatch_lines(["super: *, model openai/gpt-4o, answers of 2*, *"])
    result.stdout.fnmatch_lines(["4 of 4 trials got all answers from 2*"])
    assert len(openai_environment.requests) == asked == 10
    for name, row in talking.results.items():
        assert {key: row[key] for key in FIGURES} == {key: first[name][key] for key in FIGURES}
        assert (first[name]["recorded"], row["recorded"]) == (0, row["steps"] - 1)
        assert row["recorded_usd"] == pytest.approx(row["cost_usd"])
    # Of the same epoch, which the server had answered otherwise.
    files = [talking.answers(f"a/{epoch}.0", run) for epoch in (1, 2) for run in ("first", "latest")]
    ends = [[call.end["answer"] for call in read_answers(file).calls.values()] for file in files]
    assert ends[0] == ends[1] != ends[2] == ends[3]
    assert KEY not in files[0].read_text()


def test_the_first_request_that_is_not_recorded_ends_its_trial_and_is_shown(
    talking: TalkingProject, openai_environment: OpenAIServer
) -> None:
    talking.add_talk("a", "new one", "two", "three")
    talking.add_talk("b", "new one", "two", answer="5")
    talking.record()
    asked = len(openai_environment.requests)
    talking.say("a", "new one", "2nd", "three")
    talking.run(*FAIL, "--super-epochs=2").assert_outcomes(passed=1, errors=3)
    error = talking.results["a[1]"]["error"]
    assert error.startswith(
        f"{talking.answers(run='first')} has no answer to call 2: message 3 (user): 'two' -> '2nd'. "
    )
    assert "--super-answers-miss=live" in error
    assert len(openai_environment.requests) == asked
    assert talking.results["a[1]"]["recorded"] == 1
    error = talking.results["b[2]"]["error"]
    assert error.startswith("the recorded run has no answers of this task in this epoch: ")


def test_the_model_is_asked_for_what_is_not_recorded_and_that_alone_is_paid(
    talking: TalkingProject, openai_environment: OpenAIServer
) -> None:
    talking.add_talk("a", "new one", "two", "new three", "four", answer="4")
    first = talking.record()["a[1]"]
    talking.say("a", "new one", "2nd", "new three", "four")
    # Less than all answers have cost, and more than the new one costs.
    result = talking.run(MODEL, "--super-answers=first", f"--super-max-cost={first['cost_usd'] / 2}")
    row = talking.results["a[1]"]
    assert len(openai_environment.requests) == 4 + 1
    assert row["solved"]
    assert (row["recorded"], [call["recorded"] for call in talking.calls]) == (3, [1, 0, 1, 1])
    assert 0 < row["recorded_usd"] < row["cost_usd"]
    result.stdout.fnmatch_lines(
        ["0 of 1 trial got all answers from 2*", "  a: call 2: message 3 (user): 'two' -> '2nd'"]
    )
    spent, whole = row["cost_usd"] - row["recorded_usd"], row["cost_usd"]
    result.stdout.fnmatch_lines([f"spent ${spent:.4f}; without recorded answers it is about ${whole:.4f}"])


def test_a_path_that_each_local_sandbox_has_anew_misses_no_answer(
    talking: TalkingProject, openai_environment: OpenAIServer
) -> None:
    talking.write("conftest.py", "")
    talking.write("agent.py", WARNED)
    talking.add_task("a", answer="1")
    assert talking.record()["a[1]"]["solved"]
    talking.run(*FAIL).assert_outcomes(passed=1)
    assert len(openai_environment.requests) == 1
    assert (talking.results["a[1]"]["recorded"], talking.results["a[1]"]["provided"]) == (1, 0)


@pytest.mark.slow
def test_recorded_answers_lengthen_no_limit(
    talking: TalkingProject, openai_environment: OpenAIServer
) -> None:
    talking.add_talk("a", "new one", "two", "three", "four", answer="4")
    openai_environment.latency = 0.6
    first = talking.record()["a[1]"]
    for limit in ({"wall": 1}, {"tokens": first["prompt_tokens"] // 2}):
        talking.add_talk("a", "new one", "two", "three", "four", answer="4", limits=limit)
        talking.run(*FAIL)
        row = talking.results["a[1]"]
        assert row["stop_reason"] == next(iter(limit))
        assert 1 < row["recorded"] < 4


@pytest.mark.slow
def test_a_run_with_recorded_answers_can_be_resumed(
    talking: TalkingProject, openai_environment: OpenAIServer
) -> None:
    # A run with fixtures of its own is not resumed.
    (talking.path / "conftest.py").unlink()
    for id in ("left", "right"):
        talking.add_talk(id, "new one", "two")
    talking.record()
    asked = len(openai_environment.requests)
    talking.run(*FAIL, "-k", "left")
    talking.run(*FAIL, "--super-resume=latest")
    rows = talking.results
    assert [bool(rows[name]["resumed_from"]) for name in ("left[1]", "right[1]")] == [True, False]
    assert [row["recorded"] for row in rows.values()] == [2, 2]
    assert len(openai_environment.requests) == asked


@pytest.mark.slow
def test_no_record_is_kept_if_that_is_wished(talking: TalkingProject) -> None:
    talking.add_talk("a", "new one")
    talking.run(MODEL, "--super-answers=none")
    assert not talking.answers().exists()
    result = talking.run("--super-answers=latest", MODEL)
    result.stderr.fnmatch_lines(["*--super-answers=latest: the run * has no answers: *"])


@pytest.mark.slow
@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("--super-answers=first", f"{MODEL}-mini"), "its model was openai/gpt-4o, not openai/gpt-4o-mini"),
        (("--super-answers=first",), "name its model: --super-model=openai/gpt-4o"),
        (("--super-answers=nobody", MODEL), "there is no run *nobody"),
        (("--super-answers-miss=fail", MODEL), "--super-answers-miss=fail needs --super-answers=RUN"),
    ],
    ids=["model", "no-model", "no-run", "no-source"],
)  # fmt: skip
def test_answers_that_cannot_be_used_are_refused_before_anything_runs(
    talking: TalkingProject, arguments: tuple[str, ...], message: str
) -> None:
    talking.add_talk("a", "new one")
    talking.record()
    result = talking.run(*arguments)
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stderr.fnmatch_lines([f"*{message}*"])


@pytest.mark.slow
def test_a_run_with_recorded_answers_gives_none_and_makes_no_baseline(
    talking: TalkingProject, capsys: pytest.CaptureFixture[str]
) -> None:
    talking.add_talk("a", "new one")
    talking.record()
    talking.run(*FAIL)
    result = talking.run(f"--super-answers={talking.latest.resolve().name}", MODEL)
    result.stderr.fnmatch_lines(["*got its answers from 2*: name that one"])
    # The newest one that has answers of its own.
    talking.run("--super-answers=latest", "--super-answers-miss=fail")
    assert talking.results["a[1]"]["recorded"] == 1
    for more in ((), ("--add",)):
        assert main(["baseline", "update", str(talking.latest), *more]) == 1
        main(["baseline", "update", str(talking.path / ".super/runs/first")])
    assert capsys.readouterr().err.count("got answers of the model from 2") == 2
    talking.answers(run="first").write_text("[]\n")
    result = talking.run(*FAIL)
    result.assert_outcomes(errors=1)
    result.stdout.fnmatch_lines(["*:1: not a line of a record*"])


def test_whole_calls_are_exported(talking: TalkingProject, capsys: pytest.CaptureFixture[str]) -> None:
    talking.add_talk("a", "new one", "two")
    talking.run(MODEL)
    assert main(["export", str(talking.latest), "--format=calls", "-o", "calls.jsonl"]) == 0
    first, second = map(json.loads, (talking.path / "calls.jsonl").read_text().splitlines())
    assert (first["id"], first["epoch"], first["call"], second["call"]) == ("a", 1, 1, 2)
    said = [each["content"] for each in second["request"]["messages"]]
    assert said == ["new one", "1", "two"]
    assert second["answer"]["choices"][0]["message"]["content"] == "2"
    assert "1 trial" in capsys.readouterr().out


# With a baseline


BASELINE = "--super-baseline=baseline.json"


def coin(server: OpenAIServer) -> None:
    """Every second trial solves its task, by its second answer."""
    server.by(lambda _: str(len(server.requests) // 2 % 2))


def couple(talking: TalkingProject, server: OpenAIServer, epochs: int) -> None:
    """Make a baseline with answers, of four tasks."""
    coin(server)
    for id in "abcd":
        talking.add_talk(id, "new one", "two", answer="1")
    talking.run(MODEL, f"--super-epochs={epochs}")
    assert main(["baseline", "update", str(talking.latest), "--with-answers"]) == 0


@pytest.fixture
def coupled(talking: TalkingProject, openai_environment: OpenAIServer) -> TalkingProject:
    couple(talking, openai_environment, 2)
    return talking


def test_a_baseline_of_an_agent_that_asked_no_model_has_no_archive(
    project: Project, capsys: pytest.CaptureFixture[str]
) -> None:
    project.add_task("t")
    project.run()
    assert main(["baseline", "update", str(project.latest), "--with-answers"]) == 0
    assert "baseline.answers.zip is not written: no trial has answers of a model\n" in capsys.readouterr().out
    assert not (project.path / "baseline.answers.zip").exists()


def test_an_agent_that_asks_the_same_passes_and_costs_nothing(
    talking: TalkingProject, openai_environment: OpenAIServer
) -> None:
    couple(talking, openai_environment, 2)
    asked = len(openai_environment.requests)
    result = talking.run(MODEL, BASELINE, "--super-epochs=2")
    assert result.ret == 0
    assert len(openai_environment.requests) == asked
    result.stdout.fnmatch_lines(
        [
            "super: *, answers of 2*, *",
            "8 of 8 trials got all answers from 2*",
            "PASS  expert: all 8 trials got the baseline's answers throughout and ended as its trials did",
        ]
    )


@pytest.mark.slow
def test_only_the_trials_that_a_change_touches_are_paid_and_a_drop_is_found(
    talking: TalkingProject, openai_environment: OpenAIServer
) -> None:
    couple(talking, openai_environment, 8)
    asked = len(openai_environment.requests)
    for id in "abc":
        talking.say(id, "new one", "II")
    openai_environment.always("0")
    result = talking.run(MODEL, BASELINE, "--super-epochs=8")
    assert len(openai_environment.requests) == asked + 3 * 8
    assert result.ret == 1
    result.stdout.fnmatch_lines(
        ["8 of 32 trials got *", "  a: call 2: *'two' -> 'II'", "  and 14 more", "REGRESSED  expert *"]
    )


@pytest.mark.slow
def test_which_runs_take_the_answers_of_a_baseline(
    coupled: TalkingProject, openai_environment: OpenAIServer
) -> None:
    asked = len(openai_environment.requests)
    result = coupled.run(BASELINE, "--super-answers-miss=fail", "--super-epochs=1")
    result.stdout.fnmatch_lines(["PASS  expert: all 4 trials got the baseline's answers throughout *"])
    assert len(openai_environment.requests) == asked
    result = coupled.run(f"{MODEL}-mini", BASELINE)
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    other = "*baseline.answers.zip: its model was openai/gpt-4o, not *, or use --super-answers=none"
    result.stderr.fnmatch_lines([other])
    result = coupled.run(f"{MODEL}-mini", BASELINE, "--super-answers=none")
    result.stdout.fnmatch_lines(["model: openai/gpt-4o -> openai/gpt-4o-mini"])
    # An agent without a model needs none.
    coupled.write("agent.py", "class Agent:\n    def run(self, trial):\n        trial.submit('1')\n")
    result = coupled.run(BASELINE)
    result.assert_outcomes(passed=4)
    result.stdout.no_fnmatch_line("*got all answers*")
    (coupled.path / "baseline.answers.zip").write_text("no archive")
    result = coupled.run(MODEL, BASELINE)
    result.stderr.fnmatch_lines(["*baseline.answers.zip is not an archive of answers: *"])


@pytest.mark.slow
def test_nothing_is_added_to_a_baseline_whose_archive_is_damaged(
    coupled: TalkingProject, capsys: pytest.CaptureFixture[str]
) -> None:
    archive, baseline = coupled.path / "baseline.answers.zip", coupled.path / "baseline.json"
    whole, before = archive.read_bytes(), baseline.read_text()
    coupled.run(MODEL)
    # In the midst of the compressed answers, whose index stays.
    archive.write_bytes(whole[:60] + bytes(40) + whole[100:])
    add = ["baseline", "update", str(coupled.latest), "--add", "--with-answers"]
    assert main(add) == 1
    assert "baseline.answers.zip is damaged" in capsys.readouterr().err
    assert baseline.read_text() == before
    archive.write_bytes(whole)
    assert main(add) == 0


@pytest.mark.slow
def test_answers_of_further_runs_are_those_of_further_epochs(
    coupled: TalkingProject, openai_environment: OpenAIServer, capsys: pytest.CaptureFixture[str]
) -> None:
    coin(openai_environment)
    coupled.run(MODEL, "--super-epochs=2")
    assert main(["baseline", "update", str(coupled.latest), "--add", "--with-answers"]) == 0
    assert "baseline.answers.zip: further answers of 8 trials" in capsys.readouterr().out
    asked = len(openai_environment.requests)
    result = coupled.run(MODEL, BASELINE, "--super-epochs=4")
    assert len(openai_environment.requests) == asked
    result.stdout.fnmatch_lines(["PASS  expert: all 16 trials got *"])
    # A new baseline without answers has none beside it.
    assert main(["baseline", "update", str(coupled.latest)]) == 1
    coupled.run(MODEL)
    assert main(["baseline", "update", str(coupled.latest)]) == 0
    assert not (coupled.path / "baseline.answers.zip").exists()
