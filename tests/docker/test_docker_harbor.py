"""Tasks in the form of Harbor, imported and run in containers of their own images."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

from pytest_super import cli
from tests.harbor_tasks import SETTINGS, add_task

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from docker import APIClient

pytestmark = pytest.mark.docker

# A reward between 0 and 1, as JSON, of what the agent has declared as an artifact.
SEPARATE = SETTINGS.replace("[verifier]", '[verifier]\nenvironment_mode = "separate"')
JSON_TEST = """\
[ -e /app/planted ] && exit 1
if python3 /tests/check.py; then echo '{"reward": 1.0, "speed": 0.5}'; else echo '{"reward": 0.25}'; fi \\
    > /logs/verifier/reward.json
"""
# Neither a planted test nor a planted reward counts.
NOTHING = "mkdir -p /tests /logs/verifier; echo true > /tests/check.py; echo 1 > /logs/verifier/reward.txt"


@pytest.fixture
def project(pytester: pytest.Pytester, image: str, engine: APIClient) -> Iterator[Path]:
    """A folder with the folder `given` of tasks in the form of Harbor."""
    add_task(pytester.path / "given/shared", base=image)
    add_task(pytester.path / "given/separate", SEPARATE, base=image, test=JSON_TEST)
    before = harbor_images(engine)
    yield pytester.path
    for name in harbor_images(engine) - before:
        engine.remove_image(name, force=True)


def harbor_images(engine: APIClient) -> set[str]:
    return {tag for image in engine.images("pytest-super-harbor") for tag in image["RepoTags"]}


def run(pytester: pytest.Pytester, agent: str) -> dict[str, Any]:
    """The reward of each task."""
    pytester.runpytest(f"--super-agent={agent}", "--super-sandbox=docker", "tasks")
    lines = (pytester.path / ".super/runs/latest/results.jsonl").read_text().splitlines()
    rows = [json.loads(line) for line in lines]
    assert [row["error"] for row in rows] == [None] * 2
    return {row["id"]: row["metrics"]["graded"] for row in rows}


def test_the_reference_gets_the_reward_and_nothing_gets_none(
    pytester: pytest.Pytester, project: Path
) -> None:
    assert cli.main(["import", "harbor", str(project / "given"), "--output", "tasks"]) == 0
    assert run(pytester, "gold") == {"shared": 1.0, "separate": 1.0}
    assert run(pytester, f"command: {NOTHING}") == {"shared": 0.0, "separate": 0.25}


def test_an_image_without_python_is_named(
    project: Path, image: str, capsys: pytest.CaptureFixture[str]
) -> None:
    environment = add_task(project / "given/without", base=image) / "environment/Dockerfile"
    environment.write_text(f"FROM {image}\nENV PATH=/bin\nRUN rm -f /bin/python3\n")
    assert cli.main(["import", "harbor", str(project / "given"), "--output", "tasks"]) == 1
    lines = capsys.readouterr().out.splitlines()
    assert f"{project / 'given/without'}: left out" in lines
    assert any(line.endswith("the image has no python3, which a kernel needs") for line in lines)
