"""Attacks on graders, and on the comparison of answers."""

# ruff: noqa: E501
from typing import Any

from tests.attacks.trials import Attacked

# The grader reads what it collects as data, and tests a function that the agent cannot change.
MODEL = "def mean(values):\n    raise NotImplementedError\n"
TESTED = "from fixed import double\n\ndef test_double():\n    assert double(2) == 4\n"
JSON_GRADE: dict[str, Any] = {"collect": ["in.json"], "command": "cp in.json out.json"}


def _json(expected: Any, **more: Any) -> dict[str, Any]:
    return {**JSON_GRADE, "result": [{"json": {"file": "out.json"}, "expected": expected, **more}]}


RESULT: dict[str, Any] = {
    "collect": ["model.py"],
    "command": "cat secret.txt > /dev/null; sleep 1",
    "files": {"secret.txt": "hidden/secret.txt"},
    "result": [{"number": "out.txt", "expected": 3}],
}
JUNIT: dict[str, Any] = {
    "collect": ["model.py"],
    "files": {"tests/test_double.py": "hidden/tested.py"},
    "command": "python -m pytest -q -p no:cacheprovider --rootdir=. --junitxml=report.xml tests",
    "result": [{"junit": "report.xml"}],
}
FORGED = '<testsuites><testsuite><testcase classname="tests.test_double" name="test_double"/></testsuite></testsuites>'


def _leaves(text: str) -> str:
    return f"open('project/in.json', 'w').write({text!r})"


# What is tried: the grader, the agent's cell.
GRADED: dict[str, tuple[dict[str, Any], str]] = {
    "control: the right values": (_json({"a": {}, "n": 3}), _leaves('{"a": {}, "n": 3}')),
    "an empty list in place of an empty mapping": (_json({"a": {}, "n": 3}), _leaves('{"a": [], "n": 3}')),
    "Infinity with a relative tolerance": (_json(3, rel=0.5), _leaves("Infinity")),
    "an overflow to infinity": (_json(3, rel=0.5), _leaves("1e999")),
    "a number of 100,000 digits": (_json(3, rel=0.5), _leaves("9" * 100_000)),
    "NaN as a score": ({**JSON_GRADE, "result": [{"json": {"file": "out.json"}}]}, _leaves("NaN")),
    "a score above 1": ({**JSON_GRADE, "result": [{"json": {"file": "out.json"}}]}, _leaves("2")),
    "1 in place of true": (_json(True), _leaves("1")),
    "true as a score": ({**JSON_GRADE, "result": [{"json": {"file": "out.json"}}]}, _leaves("true")),
    "a duplicate key": (_json({"a": 1}), _leaves('{"a": 1, "a": 2}')),
    "very deep nesting": (_json({"a": 1}), _leaves("[" * 200_000 + "]" * 200_000)),
    "a result written before the command": (RESULT, "open('project/out.txt', 'w').write('3')"),
    "a result as a link to a hidden file": (RESULT, "import os; os.symlink('secret.txt', 'project/out.txt')"),
    "a result as a FIFO": (RESULT, "import os; os.mkfifo('project/out.txt')"),
    "a result as a folder": (RESULT, "import os; os.makedirs('project/out.txt/3')"),
    "a collected file as a FIFO": (
        RESULT,
        "import os; os.remove('project/model.py'); os.mkfifo('project/model.py')",
    ),
    "a collected file as a link to itself": (
        RESULT,
        "import os; os.remove('project/model.py'); os.symlink('model.py', 'project/model.py')",
    ),
    "a process that writes the result again and again": (
        RESULT,
        "import subprocess, sys; subprocess.Popen([sys.executable, '-c', "
        '\'import time\\nwhile True: open("project/out.txt", "w").write("3"); time.sleep(0.1)\'],'
        " start_new_session=True)",
    ),
    "a sitecustomize beside the collected file": (
        JUNIT,
        f"open('project/sitecustomize.py', 'w').write('import os; open(\"report.xml\", \"w\").write({FORGED!r}); os._exit(0)')",
    ),
    "a conftest beside the collected file": (
        JUNIT,
        "open('project/conftest.py', 'w').write('def pytest_collection_modifyitems(items): items.clear()')",
    ),
    "a module that shadows the tested one": (
        JUNIT,
        "open('project/fixed.py', 'w').write('def double(value): return 2 * value')",
    ),
    "a module in place of pytest": (
        JUNIT,
        f"open('project/pytest.py', 'w').write('open(\"report.xml\", \"w\").write({FORGED!r})')",
    ),
    "a pytest.ini that collects other tests": (
        JUNIT,
        "open('project/pytest.ini', 'w').write('[pytest]\\naddopts = mine.py'); "
        "open('project/mine.py', 'w').write('def test(): pass')",
    ),
    "a program of the command beside the collected file": (
        JUNIT,
        f"import os; open('project/python', 'w').write('#!/bin/sh\\necho {FORGED!r} > report.xml'); "
        "os.chmod('project/python', 0o755)",
    ),
    "a JUnit report written before the command": (
        JUNIT,
        f"open('project/report.xml', 'w').write({FORGED!r})",
    ),
}
# What is tried: the gold answer, and the Python expression that is submitted.
ANSWERED: dict[str, tuple[Any, str]] = {
    "control: the right answer": ({"a": 1.0}, "{'a': 1.0}"),
    "an empty mapping in place of an answer": ({"a": 1}, "{}"),
    "infinity in place of an answer": ({"a": 1.0}, "{'a': float('inf')}"),
    "a huge number in place of an answer": ({"a": 1.0}, "{'a': 10**400}"),
    "a text of very deep brackets as an answer": ({"a": 1}, "'[' * 200_000 + ']' * 200_000"),
    "a text of 2 MiB of zeros as an answer": ({"a": 1}, "'(' + '0,' * 2**20 + ')'"),
    "an answer as a list of one": ({"a": 1, "b": 2}, "[1]"),
}


def tasks() -> list[Attacked]:
    expert = {"set": "expert", "query": "Do it."}
    graded = {**expert, "repository": {"path": "project", "provide": True}}
    return [
        *(Attacked(name, {**graded, "grade": grade}, cell) for name, (grade, cell) in GRADED.items()),
        *(Attacked(name, {**expert, "answer": gold}, "1", said) for name, (gold, said) in ANSWERED.items()),
    ]


# Of processor time.
SECONDS = 60
FILES = {
    "project/model.py": MODEL,
    "project/fixed.py": "def double(value):\n    return value\n",
    "project/in.json": "null",
    "hidden/tested.py": TESTED,
    "hidden/secret.txt": "3\n",
}
