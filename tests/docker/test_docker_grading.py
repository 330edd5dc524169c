"""Graders in containers, in the form of other benchmarks: hidden files, absolute paths, a reward file."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from docker import APIClient

pytestmark = pytest.mark.docker

AGENT = """
class Agent:
    def run(self, trial):
        trial.execute("open('/opt/answer.txt', 'w').write('42')")
        trial.execute("open('/usr/bin/wc', 'w').write('#!/bin/sh\\\\necho 42')")
        trial.submit(None)
"""
TEST = """\
mkdir -p /logs/verifier
[ -e /opt/left ] && exit 9
[ "$(cat /opt/answer.txt)" = 42 ] && echo 0.75 > /logs/verifier/reward.txt
printf '%s' "{\\"lines\\": $(wc -l < /tests/test.sh)}" > /logs/verifier/reward.json
"""


def test_a_grader_in_a_container_sees_the_collected_files_alone(
    pytester: pytest.Pytester, image: str, engine: APIClient
) -> None:
    pytester.makepyfile(agents=AGENT)
    (pytester.mkdir("hidden") / "test.sh").write_text(TEST)
    task = {
        "id": "reward",
        "set": "expert",
        "query": "Write 42 into /opt/answer.txt.",
        "weight": 2,
        "grade": {
            "collect": ["/opt/answer.txt"],
            "files": {"/tests": "hidden"},
            "command": "sh /tests/test.sh",
            "result": [
                {"number": "/logs/verifier/reward.txt"},
                {"json": {"file": "/logs/verifier/reward.json", "pointer": "/lines"}, "expected": 4},
            ],
            "sandbox": {"network": False, "memory": "512m"},
        },
    }
    (pytester.path / "reward.task.yaml").write_text(json.dumps(task))
    pytester.makeini(f"[pytest]\npythonpath = .\nsuper_image = {image}\nsuper_sandbox = docker\n")
    result = pytester.runpytest("--super-agent=agents:Agent", ".")
    result.stdout.fnmatch_lines(["missed  reward: graded 0.875*/logs/verifier/reward.txt is 0.75*"])
    (row,) = (pytester.path / ".super/runs/latest/results.jsonl").read_text().splitlines()
    graded = json.loads(row)["graded"]
    assert [(value["score"], value["found"]) for value in graded] == [(0.75, "0.75"), (1.0, "4")]
    assert engine.containers(all=True, filters={"label": "pytest-super.task=reward"}) == []
