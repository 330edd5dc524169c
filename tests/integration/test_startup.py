"""What the plugin costs those who do not use it: nothing."""

import json
import re
import subprocess
import sys
import tomllib
from importlib.metadata import files
from pathlib import Path

import pytest

HEAVY = {"yaml", "pydantic", "docker", "jupyter_client", "zmq", "litellm", "requests", "regex", "nbformat"}
LIST_MODULES = """
import json, sys
def pytest_unconfigure(config):
    worker = getattr(config, "workerinput", {}).get("workerid", "")
    with open(f"modules{worker}.json", "w") as file:
        json.dump(sorted(sys.modules), file)
"""


def test_without_an_agent_nothing_heavy_is_imported_and_nothing_is_made(pytester: pytest.Pytester) -> None:
    pytester.makeconftest(LIST_MODULES)
    pytester.makepyfile("def test_a(): pass")
    (pytester.path / "a.task.yaml").write_text("nonsense")
    result = pytester.runpytest_subprocess(".")
    result.assert_outcomes(passed=1)
    modules = set(json.loads((pytester.path / "modules.json").read_text()))
    assert "pytest_super.plugin" in modules
    assert not HEAVY & modules
    assert not {name for name in modules if name.startswith("pytest_super.")} - {
        "pytest_super.plugin",
        "pytest_super.options",
        "pytest_super.option_types",
        "pytest_super.option_values",
        "pytest_super.hookspecs",
    }
    assert not (pytester.path / ".super").exists()
    result.stdout.no_fnmatch_line("super:*")


def test_what_only_the_tests_install_is_not_needed_to_run_the_shipped_tasks() -> None:
    root = Path(__file__).parents[2]
    extras = tomllib.loads((root / "pyproject.toml").read_text())["project"]["optional-dependencies"]
    for_tests = [re.split("[>=]", package)[0] for package in extras["test"]]
    command = "import sys, tests.conftest; print(*sys.modules)"
    loaded = subprocess.run([sys.executable, "-c", command], cwd=root, stdout=subprocess.PIPE, text=True)
    names = set(loaded.stdout.split())
    assert modules_of("pytest") & names
    assert [package for package in for_tests if modules_of(package) & names] == []


def modules_of(package: str) -> set[str]:
    """The modules at the top of a package that is installed."""
    paths = [Path(path) for path in files(package) or () if path.suffix == ".py"]
    return {path.parts[0] if path.parent.name else path.stem for path in paths}


def test_collecting_tasks_imports_neither_engine_nor_kernel_nor_models(pytester: pytest.Pytester) -> None:
    pytester.makeconftest(LIST_MODULES)
    (pytester.path / "a.task.yaml").write_text("id: a\nset: expert\nquery: x\nanswer: 1\n")
    pytester.runpytest_subprocess("--super-agent=gold", "--collect-only", "a.task.yaml")
    modules = set(json.loads((pytester.path / "modules.json").read_text()))
    assert not {"docker", "jupyter_client", "zmq", "litellm", "requests"} & modules


def test_a_run_without_baselines_papers_and_programs_loads_nothing_for_them(
    pytester: pytest.Pytester,
) -> None:
    pytester.makeconftest(LIST_MODULES)
    (pytester.path / "a.task.yaml").write_text("id: a\nset: expert\nquery: x\nanswer: 1\n")
    options = ("--super-agent=gold", "--super-sandbox=local", "-n1")
    assert pytester.runpytest_subprocess(*options, "a.task.yaml").ret == 0
    for process in ("", "gw0"):
        modules = set(json.loads((pytester.path / f"modules{process}.json").read_text()))
        assert not {"numpy", "scipy"} & modules
        assert (
            not {f"pytest_super.{name}" for name in ("functions.masking", "trial.model_endpoint")} & modules
        )
        assert "pytest_super.model.protocols.registry" not in modules
