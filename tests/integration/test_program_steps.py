"""What a program does inside, as steps: from the calls of its model, in each protocol."""

import json
from typing import Any

import pytest

from tests.integration.conftest import SCRIPT, ProgramProject

# A small agent with one tool, a shell, that speaks the protocol which the query's first word names. If its
# second is `sub`, it begins another conversation after its first call.
AGENT = """
from client import *
import subprocess
QUERY = open(os.path.join(os.getcwd(), ".super-query.md")).read()
protocol, *rest = QUERY.split()
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
    if rest[:1] == ["sub"]:
        rest = []
        type(main)("look into it for me").ask()
open(sys.argv[1], "w").write(text)
"""


def call(id: str, command: str) -> dict[str, Any]:
    arguments = json.dumps({"command": command})
    return {"id": id, "type": "function", "function": {"name": "shell", "arguments": arguments}}


def usage(prompt: int, completion: int) -> dict[str, Any]:
    return {"usage": {"prompt_tokens": prompt, "completion_tokens": completion}}


class AgentProject(ProgramProject):
    """The id of a task is a key of the model's answers to it."""

    def __init__(self, pytester: pytest.Pytester) -> None:
        super().__init__(pytester)
        self.add_program("agent", AGENT)
        self._answers: dict[str, list[Any]] = {}

    def add(self, id: str, query: str, *answers: Any, **fields: Any) -> None:
        self.add_task(id, query=query, **fields)
        self._answers[id] = list(answers)

    def run_all(self) -> dict[str, dict[str, Any]]:
        """The results, by the ids of the tasks."""
        self.write("script.yaml", self._answers)
        agent = f"--super-agent=command: P={self.path}; python $P/agent.py {{answer_file}}"
        self.pytester.runpytest(agent, "--super-sandbox=local", ".", SCRIPT)
        return {row["id"]: row for row in self.results}

    def told(self, id: str) -> list[dict[str, Any]]:
        """The steps that the calls of the model tell of."""
        return [step for step in self.all_steps(id) if step["action"]["type"] in ("tool_call", "message")]


@pytest.fixture
def project(pytester: pytest.Pytester) -> AgentProject:
    return AgentProject(pytester)


def test_each_call_of_a_tool_is_a_step_with_its_thought_its_result_and_its_tokens(
    project: AgentProject,
) -> None:
    two = [call("c1", "echo accuracy is $((40 + 2))"), call("c2", "echo second")]
    answers = ({"text": "Let me look.", "tool_calls": two, **usage(100, 10)}, {"text": "42", **usage(200, 5)})
    for protocol in ("chat", "responses", "messages"):
        project.add(protocol, protocol, *answers, landmarks=["^accuracy is \\d+", "never printed"])
    results = project.run_all()
    assert set(results) == {"chat", "responses", "messages"}
    for protocol, result in results.items():
        assert (result["solved"], result["metrics"]["landmarks"]) == (True, 0.5), protocol
        first, second, last = project.told(protocol)
        assert json.loads(first["action"]["content"])["name"] == "shell"
        assert (first["thought"], first["observation"]) == ("Let me look.", "accuracy is 42\n")
        assert (second["thought"], second["observation"]) == ("", "second\n")
        assert (last["action"], last["observation"]) == ({"type": "message", "content": "42"}, "")
        assert [step["prompt_tokens"] for step in (first, second, last)] == [100, 0, 200]
        assert (first["landmarks"], result["landmarks_found"][0]["step"]) == ([0], first["number"])
        # All that the trial used is in its steps once.
        steps = project.all_steps(protocol)
        assert sum(step["prompt_tokens"] for step in steps) == result["prompt_tokens"] == 300
        assert [step["number"] for step in steps] == list(range(1, len(steps) + 1))
        assert result["steps"] == len(steps)
        # Hosted tools that were left out are named once.
        observation = next(step for step in steps if step["action"]["type"] == "command")["observation"]
        removed = observation.count("[Removed from the program's requests: web_search, which")
        assert removed == (protocol == "responses")


def test_what_a_conversation_does_not_show_in_order_is_told_as_well(project: AgentProject) -> None:
    look = {"text": "Let me look.", "tool_calls": [call("c1", "echo one")]}
    project.add("another", "responses sub", look, "I have looked into it", "42")
    commands = [call("c1", "cat .super-query.md"), call("c2", "echo step 7 done")]
    landmarks = ["accuracy is 42", "step 7 done"]
    given = {"text": "x", "tool_calls": commands}
    project.add("given", "chat Print that the accuracy is 42.", given, "42", landmarks=landmarks)
    project.add("killed", "messages", {"text": "x", "tool_calls": [call("c1", "kill -9 $PPID")]})
    calls = [
        {"text": "x", "tool_calls": [call(f"c{n}", f"echo number {n}")], **usage(100, 1)} for n in range(9)
    ]
    project.add("spent", "responses", *calls, limits={"tokens": 250})
    project.add("long", "messages", *calls, "42")
    results = project.run_all()
    # Another conversation is told by its beginning.
    thoughts = {step["action"]["content"]: step["thought"] for step in project.told("another")}
    assert thoughts["I have looked into it"] == "[conversation 2]"
    assert thoughts["42"] == ""
    # The agent reaches no landmark by text of the task or of its own commands.
    assert [found["step"] for found in results["given"]["landmarks_found"]] == [None, None]
    assert results["given"]["metrics"]["landmarks"] == 0.0
    # A call whose result nobody shows is a step.
    (step,) = project.told("killed")
    assert step["observation"] == "[No later request has shown what came of it.]"
    # The request that would have shown the second result was refused.
    assert results["spent"]["stop_reason"] == "tokens"
    assert [step["observation"][:14] for step in project.told("spent")] == ["number 0\n", "[No later requ"]
    used = sum(step["prompt_tokens"] for step in project.all_steps("spent"))
    assert used == results["spent"]["prompt_tokens"] == 200
    # A long conversation shows each result once.
    observations = [step["observation"] for step in project.told("long")]
    assert observations == [*(f"number {n}\n" for n in range(9)), ""]
