"""Trials that cannot go on from recorded answers, because the provider refuses the thoughts in them."""

import json
from typing import Any

import pytest

from tests.integration.conftest import Folder, read_lines
from tests.openai_server import Answer, OpenAIServer

MODEL = "--super-model=openai/gpt-4o"
# Asks what the file says, one message after the other, and sends the model's thoughts back.
TALK = """
import json, os, sys, urllib.request
from pathlib import Path

items = []
for text in json.loads(Path(sys.argv[1]).read_text()):
    items.append({"type": "message", "role": "user", "content": text})
    request = urllib.request.Request(
        os.environ["OPENAI_BASE_URL"] + "/responses",
        json.dumps({"model": "any", "input": items, "include": ["reasoning.encrypted_content"]}).encode(),
        {"Content-Type": "application/json", "Authorization": "Bearer " + os.environ["OPENAI_API_KEY"]},
    )
    with urllib.request.urlopen(request) as response:
        items += json.load(response)["output"]
print(json.dumps(items[-1]["content"][0]["text"]))
"""


@pytest.fixture
def thinking(pytester: pytest.Pytester, openai_environment: OpenAIServer) -> Folder:
    """One task, whose agent asks twice; its run becomes `first`."""
    project = Folder(pytester)
    project.write("talk.py", TALK)
    project.write("said.json", json.dumps(["one", "two"]))
    project.add_task("a", answer="right")
    openai_environment.by(answer_to)
    run(project)
    project.latest.resolve().rename(project.path / ".super/runs/first")
    return project


def answer_to(request: dict[str, Any]) -> dict[str, Any]:
    # A string is the question by which the gateway finds out whether the model answers at all.
    items = request["input"] if isinstance(request["input"], list) else []
    asked = sum(item.get("role") == "user" for item in items)
    return {"text": "right" if asked == 2 else "hm", "reasoning_content": "think"}


def refuse_second_request(server: OpenAIServer) -> None:
    def answer(request: dict[str, Any]) -> Answer:
        given = answer_to(request)
        return server.fault("400") if given["text"] == "right" else given

    server.by(answer)


def run(project: Folder, *arguments: str) -> Any:
    line = f"python {project.path}/talk.py {project.path}/said.json > {{answer_file}}"
    return project.pytester.runpytest(
        f"--super-agent=command: {line}", "--super-sandbox=local", MODEL, "--super-epochs=1", *arguments
    )


def test_a_request_that_is_refused_after_recorded_answers_is_not_the_agents_miss(
    thinking: Folder, openai_environment: OpenAIServer
) -> None:
    thinking.write("said.json", json.dumps(["one", "II"]))
    refuse_second_request(openai_environment)
    run(thinking, "--super-answers=first").assert_outcomes(errors=1)
    (row,) = read_lines(thinking.latest / "results.jsonl")
    assert row["recorded"] == 1
    assert row["error"].endswith("encrypted thoughts in them: --super-answers=none does without")
