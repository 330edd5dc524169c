"""`pytest-super paper new`: what it runs, states and refuses."""

import shlex
from pathlib import Path
from typing import Any

import pytest
import yaml

from pytest_super.cli import main
from pytest_super.functions.masking import masked_files

CODE = """\
class Mean:
    def of(self, values):
        count = len(values)
        result = total(values) / count
        return result


def total(values):
    result = 0
    for value in values:
        result = result + value
    return result


def short(values):
    return values


def idle(values):
    first = values[0]
    second = values[1]
    return first + second


def main(name):
    print("started")
    short(name)
    print("mean:" if name == "mean" else "total =", end=" ")
    print(f"[tensor({Mean().of([1.25, 2, 6.5])})]" if name == "mean" else total([1.25, 2, 6.5]))
"""
RUN = """\
import os, stats, sys
print("mean: 7")
stats.main(sys.argv[1])
print("noise =", 100 + int(os.environ["PYTHONHASHSEED"]) % 2 / 2)
print("none: 0, version: 1.2.x")
"""


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The working directory, with a repository."""
    (tmp_path / "project").mkdir()
    (tmp_path / "project/stats.py").write_text(CODE)
    (tmp_path / "project/run.py").write_text(RUN)
    (tmp_path / "project/old.py").write_text("print 'Python 2'\n")
    monkeypatch.chdir(tmp_path)
    return tmp_path


def new(options: str, status: int = 0) -> None:
    assert main(["paper", "new", "project", "--sandbox=local", *shlex.split(options)]) == status


def written(folder: Path) -> dict[str, Any]:
    data: dict[str, Any] = yaml.safe_load((folder / "project.task.yaml").read_text())
    return data


def test_a_task_states_what_the_original_code_executes_and_prints(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (folder / "paper.md").write_text("The mean is 3.25, in 12 of 97.5 %, and the total is 9.750.\n")
    new("--command 'python run.py mean' --command 'python run.py total' --paper paper.md")
    assert capsys.readouterr().out.splitlines() == [
        "project.task.yaml: 2 functions, 9 values; gold passes",
        "1 value not taken, because a later one has the same name: --block, such as 'epoch \\d+', tells them "
        "apart",
        "other values in a second run, which sets the tolerance: noise, noise",
    ]
    task = written(folder)
    targets = ["stats.py::Mean.of", "stats.py::total"]
    masked = masked_files(folder / "project", targets)["stats.py"].functions
    assert task["functions"] == [
        {"id": place, "target": target, "sha256": one.sha256}
        for place, (target, one) in enumerate(zip(targets, masked, strict=True))
    ]
    mean, total = task["experiments"]
    assert "functions" not in mean
    assert total["functions"] == [1]
    stable, noise, zero = mean["result"]
    assert stable["expected"] == {"mean": 3.25, "version": 1.2}
    assert stable["rel"] == 0.001
    assert zero["expected"] == {"none": 0}
    assert zero["abs"] > 0
    assert list(noise["expected"]) == ["noise"]
    assert noise["rel"] == 0.0075
    assert task["paper"]["redact"] == [r"(?<!\w)3\.25(?!\w)", r"(?<!\w)9\.750(?!\w)"]
    assert task["n"] == 1
    text = (folder / "project.task.yaml").read_text()
    assert "# Keep those that the paper describes" in text
    assert "# sandbox: {packages:" in text


def test_targets_pattern_block_and_packages_are_those_of_the_user(folder: Path) -> None:
    options = "--command 'python run.py total' --target stats.py::total --block started --timeout 900"
    new(rf"{options} --pattern '^(?P<name>\w+) = (?P<value>9.*)' --package pip --output here.task.yaml")
    task = yaml.safe_load((folder / "here.task.yaml").read_text())
    assert [one["target"] for one in task["functions"]] == ["stats.py::total"]
    (experiment,) = task["experiments"]
    assert experiment["timeout"] == 900
    assert experiment["result"][0]["expected"] == {"started total": 9.75}
    assert task["sandbox"] == {"packages": ["pip"]}


STATE = """\
total = unused = 0


class Fit:
    def fit(self, values, other):
        global total, unused
        total = sum(values)
        unused = local = self.private = 1
        self.mean, other.size = total / len(values), len(values)
        self.private += self.private + local
        return self

    def report(self, other):
        text = f"mean: {self.mean + other.size}"
        print(text)
        print(f"total: {total}")
"""


def test_a_description_has_the_state_that_a_body_sets_and_other_code_reads(folder: Path) -> None:
    (folder / "project/stats.py").write_text(STATE)
    # The name of a script needs no suffix.
    (folder / "project/script").write_text(
        "import stats\none = stats.Fit()\ndef go():\n    one.fit([1, 2.5], one).report(one)\ngo()\n"
    )
    new("--command 'python script' --target script::go --target stats.py::fit --target stats.py::report")
    assert {one["target"]: one.get("description") for one in written(folder)["functions"]} == {
        "script::go": None,
        "stats.py::Fit.fit": "Sets `other.size`, `self.mean`, `total`.",
        "stats.py::Fit.report": None,
    }


OWN = "def own():\n    a = 1\n    b = 2\n    print('own:', stats.total([a, b]))\nown()\n"


def test_functions_of_a_script_that_a_command_names_are_not_proposed(folder: Path) -> None:
    script = f"import stats\n{OWN}"
    (folder / "project/own.py").write_text(script)
    (folder / "project/part").mkdir()
    (folder / "project/part/own.py").write_text(script)
    new("--command 'python ./own.py && python -m part.own'")
    assert [one["target"] for one in written(folder)["functions"]] == ["stats.py::total"]


def test_the_last_value_of_a_name_is_proposed_if_it_is_a_number_and_no_duration(folder: Path) -> None:
    last = ["1,234.5", "0:01:02.5", "2024-01-02", "1.2.3", "[1,2]", "nan", "-inf"]
    wrong = [f"w{place}: 7\nw{place}: {text}" for place, text in enumerate(last)]
    right = "phase: inference y=2, acc=0.5,auc=6e-05, of: 3/4 {'n':12,'m':.5} share: 97.5% x: [1. 2.]"
    times = "fit_time: 1.5\nSeconds = 3\nElapsed time: 2.25\nfit took: 3.2 s\nepoch: 12.5ms\nall: 4 min"
    lines = [*wrong, right, "big: 1_000.", "t: 12.5dB", times, "timeless: 2, 1 sample: 5 min: 3 times2: 6"]
    (folder / "project/run.py").write_text(f"{RUN}print({chr(10).join(lines)!r})\n")
    new("--command 'python run.py mean'")
    results = written(folder)["experiments"][0]["result"]
    found = {name: value for one in results for name, value in one["expected"].items()}
    of_run = {name: found.pop(name) for name in ("mean", "noise", "none", "version")}
    assert of_run["version"] == 1.2
    numbers = {"acc": 0.5, "auc": 6e-5, "of": 3, "n": 12, "m": 0.5, "share": 97.5, "x": 1, "t": 12.5}
    kept = {"timeless": 2, "sample": 5, "min": 3, "times2": 6}
    assert found == {**numbers, **kept, "big": 1000, "inference y": 2}


def test_a_file_is_overwritten_only_by_force_and_src_is_the_repositorys_own(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    package = folder / "project/src/stats_of"
    package.mkdir(parents=True)
    (package / "__init__.py").write_text(CODE)
    (folder / "project/run.py").write_text(RUN.replace("stats", "stats_of"))
    (folder / "project.task.yaml").write_text("mine")
    command = "--command 'python run.py mean'"
    new(command, status=1)
    assert "project.task.yaml exists: --force overwrites it" in capsys.readouterr().err
    assert (folder / "project.task.yaml").read_text() == "mine"
    new(f"{command} --force")
    assert written(folder)["sandbox"] == {"env": {"PYTHONPATH": "src"}}
    assert written(folder)["functions"][0]["target"] == "src/stats_of/__init__.py::Mean.of"


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (
            "--command 'python -c \"import absent\"'",
            "fails with the original code: experiment 1 ended with exit code 1 and printed: "
            "ModuleNotFoundError: No module named 'absent'; experiment 1: exit code is 1, not 0\n"
            "the module absent is missing: for containers, list its package and ipykernel in FILE, run "
            "`pytest-super image build --requirements FILE --tag NAME`, and give `--image NAME`; for local "
            "and bubblewrap, install it with pip\n",
        ),
        ("--command 'sleep 600' --timeout 0.5", "did not end within 0.5 s; --timeout allows more time\n"),
        ("--command 'python run.py mean' --target stats.py::idle", "no command executes stats.py::idle"),
        ("--command 'python run.py mean' --pattern 'x(.*)'", "needs the groups `name` and `value`"),
        ("--command 'echo nothing here'", "prints nothing that --pattern matches, but: nothing here"),
        ("--command 'echo a: 1'", "executes no function of project to mask: --target names one"),
        ("--command 'python run.py mean' --output project/x.task.yaml", "is not inside project"),
    ],
)
def test_nothing_is_written_of_what_cannot_work(
    folder: Path, capsys: pytest.CaptureFixture[str], options: str, message: str
) -> None:
    new(options, status=1)
    error = capsys.readouterr().err
    assert message in error
    assert ("the module " in error) == ("the module " in message)
    assert not list(folder.rglob("*.task.yaml"))


def test_gold_that_fails_is_told(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    # The runs that look for values have the seeds 0 and 1.
    seeded = "print('seeded:', int(os.environ['PYTHONHASHSEED']) // 2)\n"
    (folder / "project/run.py").write_text(RUN + seeded)
    new("--command 'python run.py mean'", status=1)
    assert "gold fails: experiment 1: seeded is 1.0, not 0\n" in capsys.readouterr().out
    assert written(folder)["experiments"]
