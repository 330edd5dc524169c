"""The CodeAgent of smolagents. Seen: docs/reference/agents/smolagents.md."""

from pytest_super.programs.installed.agent import InstalledAgent
from pytest_super.programs.installed.packages import PipPackages

# Its own command line leaves no answer. Its interpreter runs Python that imports what it is allowed to; by
# `subprocess` it has a shell, as the other agents have.
PROGRAM = """
import json, os, sys
from smolagents import CodeAgent, OpenAIModel

prompt, message_file, name = sys.argv[1:]
model = OpenAIModel(name, api_base=os.environ["OPENAI_BASE_URL"], api_key=os.environ["OPENAI_API_KEY"])
agent = CodeAgent([], model, additional_authorized_imports=["*"])
with open(prompt, encoding="utf-8") as file:
    answer = agent.run(file.read() + "\\nCall final_answer with the same value.")
with open(message_file, "w", encoding="utf-8") as file:
    file.write(answer if isinstance(answer, str) else json.dumps(answer, default=str))
"""

SMOLAGENTS = InstalledAgent(
    name="smolagents",
    package=PipPackages(requirements=("smolagents[openai]=={version}",)),
    version="1.26.0",
    oldest="1.20.0",
    version_command="{place}/bin/python -c 'import smolagents; print(smolagents.__version__)'",
    command="{place}/bin/python {home}/run.py {prompt_file} {message_file} {model}",
    environment={"COLUMNS": "400"},
    files={"run.py": PROGRAM},
)
