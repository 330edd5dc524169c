"""Tasks in the form of Harbor, imported and run in containers of their own images."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from io import BytesIO
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from pytest_super import cli
from tests.harbor_tasks import SETTINGS, add_task

if TYPE_CHECKING:
    from docker import APIClient

pytestmark = pytest.mark.docker

# A reward between 0 and 1, as JSON, of what the agent has declared as an artifact.
SEPARATE = SETTINGS.replace("[verifier]", '[verifier]\nenvironment_mode = "separate"')
JSON_TEST = """\
[ -e /app/planted ] && exit 1
if python3 /tests/check.py; then echo '{"reward": 1.0, "speed": 0.5}'; else echo '{"reward": 0.25}'; fi \\
    > /logs/verifier/reward.json
"""
# Writes no reward for what is wrong, so a planted one would stay.
SHARED_TEST = """\
ls /tests > /logs/verifier/files.txt
python3 /tests/check.py && echo 1 > /logs/verifier/reward.txt
"""
# Neither a planted test, nor a module that it would import, nor a planted reward counts.
PLANTED = {
    "/tests/check.py": "pass",
    "/tests/pathlib.py": "raise SystemExit(0)",
    "/logs/verifier/reward.txt": "1",
    "/app/planted": "",
}
NOTHING = "; ".join(
    ["mkdir -p /tests /logs/verifier", *(f"echo '{text}' > {path}" for path, text in PLANTED.items())]
)


@pytest.fixture
def project(pytester: pytest.Pytester, image: str, engine: APIClient) -> Iterator[Path]:
    """A folder with the folder `given` of tasks in the form of Harbor."""
    add_task(pytester.path / "given/shared", base=image, test=SHARED_TEST)
    add_task(pytester.path / "given/separate", SEPARATE, base=image, test=JSON_TEST)
    before = harbor_images(engine)
    yield pytester.path
    for name in harbor_images(engine) - before:
        engine.remove_image(name, force=True)


def harbor_images(engine: APIClient) -> set[str]:
    return {tag for image in engine.images("pytest-super-harbor") for tag in image["RepoTags"]}


def run(pytester: pytest.Pytester, agent: str, folder: str = "tasks") -> dict[str, Any]:
    """How the work on each task is graded; the accuracy of a task that has only an answer."""
    pytester.runpytest(f"--super-agent={agent}", "--super-sandbox=docker", folder)
    lines = (pytester.path / ".super/runs/latest/results.jsonl").read_text().splitlines()
    rows = [json.loads(line) for line in lines]
    assert [row["error"] for row in rows] == [None] * 2
    names = {row["id"]: "graded" if row["graded"] else "accuracy" for row in rows}
    return {row["id"]: row["metrics"][names[row["id"]]] for row in rows}


@pytest.mark.long
def test_the_reference_gets_the_reward_and_nothing_gets_none(
    pytester: pytest.Pytester, project: Path
) -> None:
    assert cli.main(["import", "harbor", str(project / "given"), "--output", "tasks"]) == 0
    assert run(pytester, "gold") == {"shared": 1.0, "separate": 1.0}
    assert run(pytester, f"command: {NOTHING}") == {"shared": 0.0, "separate": 0.25}


def test_an_image_without_python_is_named(
    project: Path, image: str, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = add_task(project / "without", base=image)
    environment = folder / "environment/Dockerfile"
    environment.write_text(f"FROM {image}\nENV PATH=/bin\nRUN rm -f /bin/python3\n")
    assert cli.main(["import", "harbor", str(folder), "--output", "tasks"]) == 1
    out, err = capsys.readouterr()
    _, left_out, *why = out.splitlines()
    assert left_out == f"{folder}: left out"
    assert why[-1].strip() == "the image has no python3, which a kernel needs"
    assert err == f"pytest-super: {folder}: none of its 1 task can be used\n"


def test_a_build_that_fails_shows_the_last_lines_of_its_step(
    project: Path, image: str, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = add_task(project / "failing", base=image)
    step = "RUN seq 1 20 && printf '\\033[31mred\\033[0m\\n' && exit 7\n"
    (folder / "environment/Dockerfile").write_text(f"FROM {image}\nRUN echo earlier\n{step}")
    assert cli.main(["import", "harbor", str(folder), "--output", "tasks"]) == 1
    why, *last = [line.strip() for line in capsys.readouterr().out.splitlines()[2:]]
    assert why.endswith("a step ended with status 7")
    assert last == [*map(str, range(12, 21)), "red"]


OWN_FOLDER = "/srv/own"
SERVING = "#!/bin/bash\npwd > place.txt\npython3 -m http.server 8123 &\n"
SERVED = "import urllib.request as r\nprint(r.urlopen('http://localhost:8123/place.txt').read().decode())\n"
SERVED_TEST = f"""\
until python3 /tests/served.py > /tmp/served; do sleep 0.1; done
[ "$(head -n 1 /tmp/served)" = "$PWD" ] && [ "$PWD" = {OWN_FOLDER} ] && echo +1. > /logs/verifier/reward.txt
"""


@pytest.mark.long
def test_a_task_begins_in_its_images_folder_and_its_solution_can_leave_a_server(
    pytester: pytest.Pytester, project: Path, image: str, engine: APIClient
) -> None:
    base = "pytest-super-harbor:own-folder"
    recipe = BytesIO(f"FROM {image}\nWORKDIR {OWN_FOLDER}\n".encode())
    assert list(engine.build(fileobj=recipe, tag=base, rm=True))
    settings = SETTINGS.replace('workdir = "/app"', f'docker_image = "{base}"')
    folder = add_task(project / "serving/one", settings, test=SERVED_TEST)
    (folder / "solution/solve.sh").write_text(SERVING)
    (folder / "tests/served.py").write_text(SERVED)
    assert cli.main(["import", "harbor", str(folder), "--output", "tasks"]) == 0
    result = pytester.runpytest("--super-agent=gold", "--super-sandbox=docker", "tasks")
    result.assert_outcomes(passed=1)


def buildkit_task(folder: Path, image: str) -> Path:
    add_task(folder)
    step = "RUN --mount=type=cache,target=/cache echo mounted > /mounted"
    (folder / "environment/Dockerfile").write_text(f"FROM {image}\nWORKDIR /app\n{step}\n")
    return folder


def test_a_dockerfile_that_needs_buildkit_is_built_by_it(
    project: Path, image: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    # An old client has BuildKit itself, a new one by its plugin.
    monkeypatch.setenv("PATH", "/usr/bin", prepend=os.pathsep)
    folder = buildkit_task(project / "cached", image)
    status = cli.main(["import", "harbor", str(folder), "--output", "tasks"])
    if "needs BuildKit" in capsys.readouterr().out:
        pytest.skip("there is no BuildKit")
    assert status == 0


def test_a_dockerfile_that_needs_buildkit_is_left_out_without_it(
    project: Path, image: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    # What a new client says without its plugin.
    client = project / "bin/docker"
    client.parent.mkdir()
    client.write_text(
        "#!/bin/sh\necho ERROR: BuildKit is enabled but the buildx component is missing\nexit 1\n"
    )
    client.chmod(0o755)
    monkeypatch.setenv("PATH", str(client.parent), prepend=os.pathsep)
    folder = buildkit_task(project / "cached", image)
    assert cli.main(["import", "harbor", str(folder), "--output", "tasks"]) == 1
    _, left_out, why, said = capsys.readouterr().out.splitlines()
    assert left_out == f"{folder}: left out"
    assert why.endswith(
        "the Dockerfile needs BuildKit, which is in Docker's command line or its plugin buildx"
    )
    assert said.strip() == "ERROR: BuildKit is enabled but the buildx component is missing"
