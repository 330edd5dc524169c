"""Anthropic's Claude Code. Seen: docs/reference/agents/claude-code.md."""

from pytest_super.programs.installed.agent import InstalledAgent
from pytest_super.programs.installed.packages import NpmPackage

# Runs in the sandbox: prints what Claude Code says and does as lines for people, by which landmarks are found
# as well, and writes its last message into a file.
SHOW = """
import json, subprocess, sys

message_file, *command = sys.argv[1:]
with subprocess.Popen(command, stdout=subprocess.PIPE, stdin=sys.stdin) as program:
    for line in program.stdout:
        try:
            event = json.loads(line)
        except ValueError:
            print(line.decode("utf-8", "replace"), end="", flush=True)
            continue
        if event.get("type") == "result":
            text = str(event.get("result") or event.get("errors") or "")
            if event.get("is_error"):
                print(text, flush=True)
            with open(message_file, "w", encoding="utf-8", errors="replace") as file:
                file.write(text)
        content = (event.get("message") or {}).get("content")
        for part in content if isinstance(content, list) else ():
            if part.get("type") == "tool_use":
                print("$", json.dumps(part.get("input"), ensure_ascii=False), flush=True)
            elif part.get("type") == "tool_result":
                told = part.get("content")
                parts = told if isinstance(told, list) else [{"text": told}]
                print(*(one.get("text", "") for one in parts), sep="\\n", flush=True)
            elif part.get("type") == "text" and event.get("type") == "assistant":
                print(part["text"], flush=True)
sys.exit(program.returncode if program.returncode >= 0 else 128 - program.returncode)
"""

CLAUDE_CODE = InstalledAgent(
    name="claude-code",
    package=NpmPackage(name="@anthropic-ai/claude-code-linux-{cpu}@{version}", program="claude"),
    version="2.1.330",
    oldest="2.1.110",
    version_command="{place}/bin/claude-code --version",
    command="""
python3 {home}/show.py {message_file} {place}/bin/claude-code -p --output-format stream-json --verbose \
--dangerously-skip-permissions --model {model} < {prompt_file}""".strip(),
    environment={
        "CLAUDE_CONFIG_DIR": "{home}/.claude",
        # Without it, it refuses to skip permissions as root.
        "IS_SANDBOX": "1",
        "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1",
        "DISABLE_AUTOUPDATER": "1",
    },
    files={"show.py": SHOW},
)
