"""Google's Gemini CLI. Seen: docs/reference/agents/gemini-cli.md."""

import json

from pytest_super.programs.installed.agent import InstalledAgent
from pytest_super.programs.installed.packages import NodePackage

# Without the first, it does not start with another address than Google's. The others save it from waiting
# for servers.
SETTINGS = {
    "security": {"auth": {"selectedType": "gemini-api-key"}},
    "privacy": {"usageStatisticsEnabled": False},
    "general": {"enableAutoUpdate": False, "enableAutoUpdateNotification": False},
    "tools": {"useRipgrep": False},
}
# Runs in the sandbox. What it prints is also its last message. Settings of the user's own win.
RUN = f"""
message=$1
settings=$GEMINI_CLI_HOME/.gemini/settings.json
shift
mkdir -p "${{settings%/*}}"
[ -e "$settings" ] || echo '{json.dumps(SETTINGS)}' > "$settings"
{{ "$@"; echo $? > "$message.code"; }} | tee "$message"
exit "$(cat "$message.code")"
"""

GEMINI_CLI = InstalledAgent(
    name="gemini-cli",
    package=NodePackage(name="@google/gemini-cli@{version}", command="gemini"),
    version="0.61.0",
    oldest="0.61.0",
    version_command="{place}/bin/gemini-cli --version",
    command="""
sh {home}/run.sh {message_file} {place}/bin/gemini-cli --yolo --model {model} < {prompt_file}""".strip(),
    environment={
        "GEMINI_CLI_HOME": "{home}",
        # Otherwise it asks before each command in a folder that it does not know.
        "GEMINI_CLI_TRUST_WORKSPACE": "true",
        # It would start itself a second time for more memory.
        "GEMINI_CLI_NO_RELAUNCH": "true",
    },
    files={"run.sh": RUN},
)
