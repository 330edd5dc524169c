"""`pytest-super verify` on papers: what right code yields, what stubs yield, and what gives code away."""

import compileall
import json
import random
import re
import subprocess
from fnmatch import fnmatch
from pathlib import Path
from typing import Any

import pytest
import yaml

from pytest_super.functions.masking import mask_file
from pytest_super.functions.source import PythonSource
from tests.conftest import TaskFolder

CODE = '''\
def mean(values):
    """The mean."""
    return total(values) / len(values)


def total(values):
    result = 0
    for value in values:
        if value is None:
            continue
        result = result + value
    return result


def first(values): return values[0]


def unused(values):
    return len(values) + 1


def tolerated(values):
    return sum(values) % 7


async def asynchronous(values):
    async for value in later(values):
        return value


async def later(values):
    for value in values:
        yield value
'''
RUN = """\
import asyncio, json, random, stats, sys
values = [1, 2, 3, 6.5]
try:
    stats.tolerated(values)
except NotImplementedError:
    pass
print("mean =", stats.mean(values))
print("first =", asyncio.run(stats.asynchronous(values)) + stats.first(values))
print("noise =", 100 + random.random())
print("order =", list({"a", "b", "c", "d", "e"}).index("a"))
print("drawn =", 10 + random.Random(sys.argv[-1]).random())
"""


@pytest.fixture
def code(tmp_path: Path) -> Path:
    folder = tmp_path / "project"
    folder.mkdir()
    (folder / "stats.py").write_text(CODE)
    (folder / "run.py").write_text(RUN)
    return folder


def value(name: str, **check: Any) -> dict[str, Any]:
    return {"name": name, "regex": {"pattern": f"{name} = (.*)"}, **check}


def values(**expected: Any) -> dict[str, Any]:
    """The same by one pattern."""
    return {"regex": {"pattern": "^(?P<name>[a-z]+) = (?P<value>.*)"}, "expected": expected, "rel": 1e-6}


MEAN, FIRST = value("mean", expected=3.125, rel=0.01), value("first", expected=2)


def verify(
    code: Path,
    names: list[str],
    *results: dict[str, Any],
    status: int,
    options: tuple[str, ...] = (),
    command: str = "python run.py",
    about: dict[str, str] | None = None,
    **paper: Any,
) -> tuple[str, dict[str, Any]]:
    """What the command prints, and what it writes as JSON."""
    source = PythonSource.read("stats.py", (code / "stats.py").read_bytes())
    masked = mask_file(source, names, nested=True).functions
    digests = {one.name: one.sha256 for one in masked}
    task = {
        "id": "paper",
        "set": "functions",
        "query": "Statistics.",
        "repository": {"path": "project", "provide": True},
        "functions": [
            {"target": f"stats.py::{name}", "sha256": digests[name], **(about or {})} for name in names
        ],
        "experiments": [{"name": "run", "command": command, "result": list(results)}],
        **paper,
    }
    (code.parent / "paper.task.yaml").write_text(yaml.safe_dump(task))
    found = code.parent / "found.json"
    arguments = ("--sandbox=local", "--epochs=2", f"--json={found}", "paper.task.yaml", *options)
    ran = TaskFolder(code.parent).command("verify", *arguments)
    assert ran.returncode == status, ran.stdout + ran.stderr
    return ran.stdout, json.loads(found.read_text())


def verdicts(data: dict[str, Any]) -> dict[str, str]:
    (proof,) = data["papers"]
    return {one["target"].partition("::")[2]: one["verdict"] for one in proof["functions"]}


def stated_vary(printed: str) -> list[dict[str, Any]]:
    """What is to be appended to an experiment: the lines with its indentation."""
    lines = [line for line in printed.splitlines() if line.startswith("    ")]
    vary: list[dict[str, Any]] = yaml.safe_load("\n".join(lines))["vary"]
    return vary


def kinds(data: dict[str, Any]) -> set[str]:
    return {finding["kind"] for finding in data["findings"]}


@pytest.mark.long
def test_functions_that_the_experiments_need_are_valid(code: Path) -> None:
    names = ["mean", "total", "first", "asynchronous", "later"]
    compileall.compile_dir(code, quiet=2)
    printed, data = verify(code, names, MEAN, FIRST, status=0)
    assert set(verdicts(data).values()) == {"valid"}
    assert data["findings"] == []
    assert data["papers"][0]["functions"][0]["executed_by"] == ["run"]
    assert "1   stats.py::total         valid              1" in printed
    assert "without `passage` and `description`: stats.py::mean, stats.py::total, " in printed
    assert printed.endswith("paper: 2 gold runs, 5 functions: 5 valid\n")


@pytest.mark.long
def test_hidden_files_are_there_in_each_run(code: Path) -> None:
    (code.parent / "hidden.py").write_text(
        "import stats\nassert stats.mean([1, 2, 6]) == 3\nprint('mean = 3')\n"
    )
    hidden = {"name": "hidden", "command": "python check.py", "files": {"check.py": "hidden.py"}}
    experiments = [{**hidden, "result": [value("mean", expected=3)]}]
    _, data = verify(code, ["mean", "total"], status=0, experiments=experiments)
    assert verdicts(data) == {"mean": "valid", "total": "valid"}


@pytest.mark.long
def test_each_verdict_has_its_evidence(code: Path) -> None:
    names = ["mean", "unused", "tolerated", "first"]
    printed, data = verify(code, names, MEAN, status=1)
    assert verdicts(data) == {
        "mean": "valid",
        "unused": "not_executed",
        "tolerated": "insensitive",
        "first": "insensitive",
    }
    functions = {one["target"]: one for one in data["papers"][0]["functions"]}
    assert functions["stats.py::tolerated"]["passing_stubs"] == ["raise", "none", "zero", "first"]
    assert functions["stats.py::tolerated"]["unaffected"] == ["run"]
    # It is called after the mean is printed, so only its own exception is seen, and not by this check.
    assert functions["stats.py::first"]["unaffected"] == ["run"]
    assert "not_executed paper: 1 stats.py::unused: no experiment that needs it executes it" in printed
    counts = "1 valid, 1 not_executed, 2 insensitive; 5 findings"
    assert printed.endswith(f"paper: 2 gold runs, 4 functions: {counts}\n")
    assert (
        "insensitive paper: 2 stats.py::tolerated: its experiments pass with the stubs raise, none" in printed
    )


@pytest.mark.slow
def test_an_experiment_whose_gold_fails_says_nothing_of_the_functions_that_it_needs(code: Path) -> None:
    (code / "run.py").write_text("import absent\n")
    runs = code.parent / "runs"
    whole = {"name": "whole", "command": "python -c 'import stats; print(\"first =\", stats.first([2]))'"}
    experiments = [
        {"name": "run", "command": f"echo >> {runs}; python run.py", "result": [MEAN]},
        {**whole, "result": [FIRST]},
    ]
    _, data = verify(code, ["mean", "first"], experiments=experiments, status=1)
    assert set(verdicts(data).values()) == {"gold_fails"}
    assert len(runs.read_text()) == 2
    texts = [(one["kind"], one["text"].rpartition(": ")[2]) for one in data["findings"]]
    assert texts == [
        ("gold_fails", "No module named 'absent'"),
        ("not_executed", "`whole` needs it, but does not execute it"),
    ]


MISSING = {
    "data": ("cat data.csv", 1, "cat: data.csv: No such file or directory"),
    "module": ("python -c 'import own'", 1, "ModuleNotFoundError: No module named 'own'"),
    "package": ("python -m torch", 1, "*python*: No module named torch"),
    "command": ("no-such-command", 127, "*no-such-command: *not found"),
    "exit": ("python run.py; echo 'mean = 3.125'; exit 3", 3, "*| mean = 3.125"),
    "pattern": ("echo Mean: 3", 0, "Mean: 3"),
    "silent": ("true", 0, ""),
    "slow": ("echo begun; sleep 99", None, "begun"),
}


@pytest.mark.slow
def test_a_failure_of_gold_names_how_its_command_ended_and_a_log_that_is_kept(code: Path) -> None:
    checks = {**dict.fromkeys(MISSING, MEAN), "exit": {"exit": 0}}
    experiments = [
        {"name": name, "command": command, "timeout": 2, "result": [checks[name]]}
        for name, (command, _, _) in MISSING.items()
    ]
    printed, data = verify(code, ["mean"], experiments=experiments, status=1, options=("--dir=kept",))
    found = [one for one in data["findings"] if one["kind"] == "gold_fails"]
    failures = {one["facts"]["command"]: one["facts"] for one in found}
    assert {name: one["exit_code"] for name, one in failures.items()} == {
        name: code for name, (_, code, _) in MISSING.items()
    }
    for name, (command, _, said) in MISSING.items():
        assert fnmatch(failures[name]["printed"], said), failures[name]
        assert f"$ {command}\n" in (code.parent / failures[name]["log"]).read_text()
        line = f"gold_fails paper: in 2 gold runs (kept/papers/paper/gold-0.log): {failures[name]['text']}"
        assert line in printed.splitlines()
    no_match = "what the command printed has no match for `mean = (.*)`"
    assert {
        name: one["text"] for name, one in failures.items() if name in ("module", "pattern", "silent")
    } == {
        "module": "module ended with exit code 1 and printed: ModuleNotFoundError: No module named 'own'",
        "pattern": f"pattern ended with exit code 0 and printed: Mean: 3; pattern: {no_match}",
        "silent": f"silent ended with exit code 0 and printed nothing; silent: {no_match}",
    }
    timed_out = "slow printed: begun; slow: the grader's command did not end within 2 s"
    assert failures["slow"]["text"] == timed_out


@pytest.mark.slow
def test_a_value_that_differs_from_the_papers_fails_gold_only_if_that_decides(code: Path) -> None:
    # `mean` has a tolerance, `first` none.
    stated = {"mean": 3.14, "first": 2.01}
    one = {"name": "run", "command": "python run.py", "result": [MEAN, FIRST], "paper": stated}
    _, data = verify(code, ["mean"], experiments=[one], status=0)
    assert data["findings"] == []
    printed, data = verify(code, ["mean"], experiments=[{**one, "graded_by": "paper"}], status=1)
    assert verdicts(data) == {"mean": "gold_fails"}
    why = "run: first is 2.0, not the paper's 2.01, by which it is graded"
    assert data["findings"][0]["facts"]["text"] == why
    assert f"paper/gold-0.log): {why}" in printed


@pytest.mark.slow
def test_values_that_differ_between_gold_runs_are_told_with_a_tolerance(code: Path) -> None:
    # The order of a set depends on the hash seed, which gold runs vary.
    order, noise = value("order", interval=[-99, 99]), {**values(noise=100.5), "rel": 0.01}
    printed, data = verify(code, ["mean"], MEAN, order, noise, status=1)
    assert kinds(data) == {"flaky"}
    assert verdicts(data) == {"mean": "valid"}
    assert re.search(r"^flaky   paper: run: order is .* in 2 gold runs$", printed, re.MULTILINE)
    assert "flaky   paper: run: noise is 100." in printed
    spreads = {spread["name"]: spread["values"] for spread in data["papers"][0]["spreads"]}
    assert list(spreads) == ["run: order", "run: noise"]
    assert len(spreads["run: noise"]) == 2


@pytest.mark.slow
def test_a_tolerance_is_proposed_if_that_of_the_value_is_below_the_spread_over_seeds(code: Path) -> None:
    own = {"narrow": {"abs": 0.1}, "wide": {"abs": 0.2}, "relative": {"rel": 0.1}}
    drawn = [{**value("drawn", expected=10.4, **most), "name": name} for name, most in own.items()]
    command = "python run.py ${SUPER_SEED:-0}"
    printed, data = verify(code, ["mean"], MEAN, *drawn, status=0, command=command)
    spreads = {one["name"]: one["values"] for one in data["papers"][0]["seed_spreads"]}
    values = [10 + random.Random(seed).random() for seed in ("0", "1")]
    assert spreads == {f"run: {name}": values for name in own}
    proposed = [line.split()[2] for line in printed.splitlines() if line.endswith("proposed: rel: 0.017")]
    assert proposed == ["narrow"]
    assert data["papers"][0]["spreads"] == []


@pytest.mark.long
def test_a_variation_is_proposed_with_the_values_of_the_original_code(code: Path) -> None:
    both = values(mean=3.125, drawn=10 + random.Random("7").random())
    command = "python run.py --seed 7"
    printed, data = verify(code, ["mean"], both, status=0, command=command)
    (proposal,) = data["papers"][0]["proposals"]
    assert proposal["command"] == "python run.py --seed 8"
    assert proposal["expected"] == {"mean": 3.125, "drawn": pytest.approx(10 + random.Random("8").random())}
    vary = stated_vary(printed)
    assert vary == [{"command": proposal["command"], "expected": proposal["expected"]}]
    one = {"name": "run", "command": command, "result": [both], "vary": vary}
    printed, data = verify(code, ["mean"], experiments=[one], status=0)
    assert data["papers"][0]["proposals"] == []
    vary[0]["expected"]["drawn"] = 11
    printed, _ = verify(code, ["mean"], experiments=[one], status=1)
    assert "paper/gold-0.log): run varied: drawn is 10." in printed


@pytest.mark.slow
def test_the_numbers_of_a_command_are_tried_from_the_last_to_the_first(code: Path) -> None:
    (code / "run.py").write_text(
        "import stats, sys\nprint('mean =', stats.mean([int(sys.argv[1])]))\n"
        "print('text =', 'long ' * 20 + sys.argv[1])\n"
    )
    mean = value("mean", expected=5)
    clipped = value("text", expected="long " * 20 + "5")
    experiments = [
        {"name": "run", "command": "python run.py 5 --years 30 --seed=7", "result": [mean]},
        {"name": "clipped", "command": "python run.py 5", "result": [mean, clipped]},
    ]
    _, data = verify(code, ["mean"], status=0, experiments=experiments)
    found = {one["experiment"]: one for one in data["papers"][0]["proposals"]}
    assert found["run"]["command"] == "python run.py 6 --years 30 --seed=7"
    assert found["run"]["expected"] == {"mean": 6}
    # A value that is shown clipped is not proposed.
    assert found["clipped"]["expected"] == {}


@pytest.mark.slow
def test_a_proposal_is_never_cut(code: Path) -> None:
    added = "for place in range(12): print('ABCDEFGHIJKL'[place], '=', place + int(sys.argv[-1]))\n"
    (code / "run.py").write_text(RUN + added)
    letters = [value(letter, expected=place + 7) for place, letter in enumerate("ABCDEFGHIJKL")]
    noise = value("noise", interval=[100, 101])
    one = {"name": "run " * 70 + "it", "command": r"python run.py '\d' 7", "result": [MEAN, *letters, noise]}
    printed, _ = verify(code, ["mean"], experiments=[one], status=1)
    (vary,) = stated_vary(printed)
    assert vary["command"] == r"python run.py '\d' 8"
    assert vary["expected"]["L"] == 19
    assert f"flaky   paper: {one['name']}: noise is 100." in printed
    assert "…" not in printed


@pytest.mark.slow
def test_a_value_that_the_agent_reads_is_not_proposed(code: Path) -> None:
    (code.parent / "paper.md").write_text("The intervals are those of 95 and 99.7 %.\n")
    (code / "README.md").write_text("Its 3.256 years.\n")
    (code / "run.py").write_text(
        "import stats, sys\nmean = stats.mean([int(sys.argv[1])])\n"
        "print('mean =', mean)\nprint('told =', 0.9961 + mean / 1e4)\nprint('read =', 3.246 + mean / 1e3)\n"
    )
    both = {**values(mean=9, told=0.997, read=3.255), "rel": 1e-9}
    paper = {"file": "paper.md"}
    _, data = verify(code, ["mean"], both, status=1, command="python run.py 9", paper=paper)
    (proposal,) = data["papers"][0]["proposals"]
    assert proposal["expected"] == {"mean": 10}


@pytest.mark.slow
def test_an_experiment_that_cannot_vary_is_named(code: Path) -> None:
    commands = {"same": "python run.py 3", "none": "python run.py"}
    experiments = [{"name": name, "command": one, "result": [MEAN]} for name, one in commands.items()]
    printed, _ = verify(code, ["mean"], status=0, experiments=experiments)
    name = "has no hidden variation, so a table of its values passes; "
    why = "no other seed or number in its command changes its values and yields all of them: "
    assert f"`same` {name}{why}let it take an argument that does" in printed
    assert f"`none` {name}{why}" in printed


@pytest.mark.slow
def test_a_tolerance_below_the_spread_over_seeds_is_flaky(code: Path) -> None:
    gold = 10 + random.Random("7").random()
    drawn = value("drawn", expected=gold, rel=1e-6)
    command = "python run.py ${SUPER_SEED:-7}"
    printed, data = verify(code, ["mean"], MEAN, drawn, status=1, command=command)
    assert kinds(data) == {"flaky"}
    assert "flaky   paper: with 2 seeds (.super/verify/papers/paper/seed-0.log): run: drawn is 10." in printed
    assert verdicts(data) == {"mean": "valid"}


@pytest.mark.slow
def test_experiments_that_trust_an_exit_code_are_weak(code: Path) -> None:
    printed, data = verify(code, ["mean"], {"exit": 0}, status=1)
    assert "weak" in kinds(data)
    assert "weak    paper: files that only have `os._exit(0)` pass" in printed


@pytest.mark.long
def test_what_gives_code_or_values_away_is_named(code: Path) -> None:
    (code / "run.py").write_text("import stats\nprint('mean =', stats.mean([3, 3.2514]))\n")
    (code.parent / "paper.md").write_text("A paper.\nThe mean is 3.1257.\n")
    (code / "old.py.bak").write_text(CODE)
    (code / "other.py").write_text(CODE.replace("total", "summed"))
    (code / "README.md").write_text("The mean is 3.1257.")
    copied: dict[str, Any] = {
        "paper": {"file": "paper.md"},
        "pre_execute": ["!cp project/stats.py copy.orig"],
    }
    mean = value("mean", expected=3.1257)
    printed, data = verify(code, ["mean", "total"], mean, status=1, **copied)
    assert kinds(data) == {"leaks"}
    what = "run.mean (3.1257) of the answer: "
    for leak in (
        "project/old.py.bak: it can contain the original code",
        "project/other.py: `summed` has",
        f"{what}the working directory/project/README.md, line 1",
        f"{what}the paper, line 2",
        "copy.orig: it can contain the original code",
    ):
        assert leak in printed


@pytest.mark.long
def test_values_in_what_a_task_says_of_functions_and_experiments_leak(code: Path) -> None:
    (code / "run.py").write_text("import stats\nprint('mean =', stats.mean([3, 3.2514]))\n")
    told = {"description": "It is 3.1257."}
    run = {"name": "run", "command": "python run.py", "result": [value("mean", expected=3.1257)], **told}
    about = {**told, "passage": "It is 3.1257."}
    printed, data = verify(code, ["mean"], status=1, about=about, experiments=[run])
    assert kinds(data) == {"leaks"}
    for place in ("description of stats.py::mean", "passage of stats.py::mean", "description of `run`"):
        assert f"run.mean (3.1257) of the answer: the {place}, line 1" in printed


REPEATED = """

def spread(values):
    checked = sorted(value for value in values)
    if len(checked) < 2:
        raise ValueError("needs two values")
    largest_of_all = checked[-1] - checked[0]
    smallest_of_all = 0 * min(min(values), max(values), 12)
    return largest_of_all + smallest_of_all + sum([0, 0, 0])


def middle(values):
    checked = sorted(value for value in values)
    if len(checked) < 2:
        raise ValueError("needs two values")
    return checked[len(checked) // 2]
"""


@pytest.mark.slow
def test_lines_of_a_body_are_named_as_in_the_repository_unless_they_are_boilerplate(code: Path) -> None:
    again = REPEATED[REPEATED.index("def middle") :].replace("middle", "centre")
    (code / "run.py").write_text(
        "import stats\nprint('mean =', stats.middle([1, 3, 4]) + stats.spread([1, 2]))\n"
    )
    names = ["spread", "middle"]
    # Gold fails, so stubs are not run.
    fails = value("mean", expected=5)
    (code / "stats.py").write_text(REPEATED)
    printed, _ = verify(code, names, fails, status=1)
    # Of `middle`, which is below the masked body.
    assert "paper: stats.py: it has 3 of the 6 long lines: lines 13, 14, 15 (stats.py::spread)" in printed
    (code / "stats.py").write_text(REPEATED + again)
    printed, _ = verify(code, names, fails, status=1)
    assert "it has" not in printed


@pytest.mark.long
def test_code_that_the_network_gives_away_is_named(code: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(code.parent / "cache"))
    for arguments in (["init", "--quiet"], ["add", "."], ["commit", "--quiet", "-m", "code"]):
        command = ["git", "-c", "user.name=a", "-c", "user.email=a@b", "-C", str(code), *arguments]
        subprocess.run(command, check=True)
    head = subprocess.run(["git", "-C", str(code), "rev-parse", "HEAD"], capture_output=True, text=True)
    commit = head.stdout.strip()
    repository = {"git": code.as_uri(), "commit": commit, "provide": True}
    sandbox = {"network": True}
    printed, data = verify(code, ["mean"], MEAN, status=1, repository=repository, sandbox=sandbox)
    assert verdicts(data) == {"mean": "valid"}
    assert f"the agent can fetch the masked functions: {code.as_uri()} at commit {commit}" in printed


def test_a_paper_that_cannot_be_proven_is_unknown(code: Path) -> None:
    printed, data = verify(
        code, ["mean"], MEAN, status=1, pre_execute=["!exit 0", "1/0"], sandbox={"gpus": 1}
    )
    assert kinds(data) == {"unknown"}
    assert printed.startswith("paper: ")


@pytest.mark.long
def test_other_tasks_are_verified_beside_papers(code: Path) -> None:
    other = {"id": "other", "set": "expert", "query": "q", "answer": 2, "solution": {"cells": ["1 + 1"]}}
    (code.parent / "other.task.yaml").write_text(yaml.safe_dump(other))
    options = ("other.task.yaml", "--functions=2")
    printed, data = verify(code, ["mean", "total", "first"], MEAN, FIRST, status=0, options=options)
    assert len(verdicts(data)) == 2
    assert "1 task, 2 trials in 2 epochs: nothing was found" in printed
    assert "paper: 2 gold runs, 2 functions: 2 valid" in printed
    assert data["tasks"] == 1
