"""What a program does inside, as steps: from the calls of its model, in each protocol."""

import json
from typing import Any

import pytest

from tests.integration.conftest import SCRIPT, ProgramProject

# A small agent with one tool, a shell, that speaks the protocol of its first argument. With `sub` it begins
# another conversation after its first call.
AGENT = """
from client import *
import subprocess
protocol, answer_file, *rest = sys.argv[1:]
QUERY = open(os.path.join(os.getcwd(), ".super-query.md")).read()
SCHEMA = {"type": "object", "properties": {"command": {"type": "string"}}}

def post(path, body):
    base = os.environ["ANTHROPIC_BASE_URL"]
    request = urllib.request.Request(base + path, json.dumps(body).encode())
    return json.load(urllib.request.urlopen(request))

class Chat:
    def __init__(self, query):
        self.messages = [{"role": "system", "content": "be brief"}, {"role": "user", "content": query}]

    def ask(self):
        function = {"name": "shell", "parameters": SCHEMA}
        tools = [{"type": "function", "function": function}]
        answer = post("/v1/chat/completions", {"messages": self.messages, "tools": tools})
        said = answer["choices"][0]["message"]
        self.messages.append(said)
        calls = [(c["id"], c["function"]["arguments"]) for c in said.get("tool_calls") or []]
        return said["content"], [(id, json.loads(given)["command"]) for id, given in calls]

    def tell(self, id, text):
        self.messages.append({"role": "tool", "tool_call_id": id, "content": text})

class Responses:
    def __init__(self, query):
        self.items = [{"role": "developer", "content": "be brief"}, {"role": "user", "content": query}]

    def ask(self):
        tools = [{"type": "function", "name": "shell", "parameters": SCHEMA}, {"type": "web_search"}]
        answer = post("/v1/responses", {"input": self.items, "tools": tools})
        self.items += answer["output"]
        text = "".join(p["text"] for i in answer["output"] if i["type"] == "message" for p in i["content"])
        calls = [i for i in answer["output"] if i["type"] == "function_call"]
        return text, [(i["call_id"], json.loads(i["arguments"])["command"]) for i in calls]

    def tell(self, id, text):
        self.items.append({"type": "function_call_output", "call_id": id, "output": text})

class Messages:
    def __init__(self, query):
        self.messages = [{"role": "user", "content": query}]

    def ask(self):
        tools = [{"name": "shell", "input_schema": SCHEMA}]
        body = {"system": "be brief", "messages": self.messages, "tools": tools, "max_tokens": 99}
        answer = post("/v1/messages", body)
        self.messages.append({"role": "assistant", "content": answer["content"]})
        self.results = []
        text = "".join(block["text"] for block in answer["content"] if block["type"] == "text")
        calls = [block for block in answer["content"] if block["type"] == "tool_use"]
        return text, [(block["id"], block["input"]["command"]) for block in calls]

    def tell(self, id, text):
        if not self.results:
            self.messages.append({"role": "user", "content": self.results})
        self.results.append({"type": "tool_result", "tool_use_id": id, "content": text})

main = {"chat": Chat, "responses": Responses, "messages": Messages}[protocol](QUERY)
while True:
    text, calls = main.ask()
    if not calls:
        break
    for id, command in calls:
        main.tell(id, subprocess.run(command, shell=True, capture_output=True, text=True).stdout)
    if "sub" in rest:
        rest.remove("sub")
        type(main)("look into it for me").ask()
open(answer_file, "w").write(text)
"""
PROTOCOLS = pytest.mark.parametrize("protocol", ["chat", "responses", "messages"])


def call(id: str, command: str) -> dict[str, Any]:
    arguments = json.dumps({"command": command})
    return {"id": id, "type": "function", "function": {"name": "shell", "arguments": arguments}}


def usage(prompt: int, completion: int) -> dict[str, Any]:
    return {"usage": {"prompt_tokens": prompt, "completion_tokens": completion}}


class AgentProject(ProgramProject):
    def __init__(self, pytester: pytest.Pytester) -> None:
        super().__init__(pytester)
        self.add_program("agent", AGENT)

    def run(self, line: str, *options: str) -> dict[str, Any]:
        agent = f"--super-agent=command: P={self.path}; python $P/agent.py {line}"
        self.outcome = self.pytester.runpytest(agent, "--super-sandbox=local", ".", SCRIPT, *options)
        return self.results[-1]

    @property
    def told(self) -> list[dict[str, Any]]:
        """The steps that the calls of the model tell of."""
        return [step for step in self.all_steps() if step["action"]["type"] in ("tool_call", "message")]


@pytest.fixture
def project(pytester: pytest.Pytester) -> AgentProject:
    return AgentProject(pytester)


@PROTOCOLS
def test_each_call_of_a_tool_is_a_step_with_its_thought_its_result_and_its_tokens(
    project: AgentProject, protocol: str
) -> None:
    project.add_task(landmarks=["^accuracy is \\d+", "never printed"])
    two = [call("c1", "echo accuracy is $((40 + 2))"), call("c2", "echo second")]
    project.script(
        {"text": "Let me look.", "tool_calls": two, **usage(100, 10)}, {"text": "42", **usage(200, 5)}
    )
    result = project.run(f"{protocol} {{answer_file}}")
    assert (result["solved"], result["metrics"]["landmarks"]) == (True, 0.5)
    first, second, last = project.told
    assert json.loads(first["action"]["content"])["name"] == "shell"
    assert (first["thought"], first["observation"]) == ("Let me look.", "accuracy is 42\n")
    assert (second["thought"], second["observation"]) == ("", "second\n")
    assert (last["action"], last["observation"]) == ({"type": "message", "content": "42"}, "")
    assert [step["prompt_tokens"] for step in (first, second, last)] == [100, 0, 200]
    assert (first["landmarks"], result["landmarks_found"][0]["step"]) == ([0], first["number"])
    # All that the trial used is in its steps once.
    steps = project.all_steps()
    assert sum(step["prompt_tokens"] for step in steps) == result["prompt_tokens"] == 300
    assert [step["number"] for step in steps] == list(range(1, len(steps) + 1))
    assert result["steps"] == len(steps)


def test_another_conversation_is_told_by_its_beginning(project: AgentProject) -> None:
    project.add_task()
    project.script(
        {"text": "Let me look.", "tool_calls": [call("c1", "echo one")]}, "I have looked into it", "42"
    )
    project.run("responses {answer_file} sub")
    thoughts = {step["action"]["content"]: step["thought"] for step in project.told}
    assert thoughts["I have looked into it"] == "[conversation 2]"
    assert thoughts["42"] == ""


def test_a_landmark_in_the_task_or_in_a_tools_arguments_is_no_achievement(project: AgentProject) -> None:
    project.add_task(query="Print that the accuracy is 42.", landmarks=["accuracy is 42", "step 7 done"])
    commands = [call("c1", "cat .super-query.md"), call("c2", "echo step 7 done")]
    project.script({"text": "x", "tool_calls": commands}, "42")
    project.run("chat {answer_file}")
    assert [found["step"] for found in project.results[-1]["landmarks_found"]] == [None, None]
    assert project.results[-1]["metrics"]["landmarks"] == 0.0


def test_a_call_whose_result_nobody_shows_is_a_step(project: AgentProject) -> None:
    project.add_task()
    project.script({"text": "x", "tool_calls": [call("c1", "kill -9 $PPID")]})
    project.run("messages {answer_file}")
    (step,) = project.told
    assert step["observation"] == "[No later request has shown what came of it.]"


def test_what_was_done_until_a_budget_was_spent_is_told(project: AgentProject) -> None:
    project.add_task(limits={"tokens": 250})
    calls = [{"text": "x", "tool_calls": [call(f"c{n}", f"echo {n}")], **usage(100, 1)} for n in range(9)]
    project.script(*calls)
    result = project.run("responses {answer_file}")
    assert result["stop_reason"] == "tokens"
    # The request that would have shown the second result was refused.
    assert [step["observation"][:14] for step in project.told] == ["0\n", "[No later requ"]
    assert sum(step["prompt_tokens"] for step in project.all_steps()) == result["prompt_tokens"] == 200


def test_hosted_tools_that_were_left_out_are_named_once(project: AgentProject) -> None:
    project.add_task()
    project.script({"text": "x", "tool_calls": [call("c1", "echo")]}, "42")
    project.run("responses {answer_file}")
    observation = next(step for step in project.all_steps() if step["action"]["type"] == "command")[
        "observation"
    ]
    assert observation.count("[Removed from the program's requests: web_search, which") == 1


def test_a_long_conversation_shows_each_result_once(project: AgentProject) -> None:
    project.add_task()
    calls = [{"text": "x", "tool_calls": [call(f"c{n}", f"echo number {n}")]} for n in range(30)]
    project.script(*calls, "42")
    project.run("messages {answer_file}")
    observations = [step["observation"] for step in project.told]
    assert observations == [*(f"number {n}\n" for n in range(30)), ""]
