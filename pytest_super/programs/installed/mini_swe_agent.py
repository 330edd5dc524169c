"""mini-swe-agent. Seen: docs/reference/agents/mini-swe-agent.md."""

from pytest_super.programs.installed.agent import InstalledAgent
from pytest_super.programs.installed.packages import PipPackages

MINI_SWE_AGENT = InstalledAgent(
    name="mini-swe-agent",
    # litellm's calls with tools need the package mcp, which it does not require.
    package=PipPackages(requirements=("mini-swe-agent=={version}", "litellm==1.106.2", "mcp==2.3.0")),
    version="2.4.6",
    oldest="2.0.0",
    version_command="{place}/bin/python -c 'import minisweagent; print(minisweagent.__version__)'",
    # Its own limit for a command, 30 seconds, is too short for experiments: 300 is that of a cell. It ends
    # without a message of its own, so its answer is in the file.
    command="""
{place}/bin/mini -c mini.yaml -c environment.timeout=300 -m openai/{model} --yolo --exit-immediately \
-o {home}/trajectory.json -t "$(cat {prompt_file})\"""".strip(),
    environment={
        "MSWEA_CONFIGURED": "true",
        "MSWEA_GLOBAL_CONFIG_DIR": "{home}",
        "MSWEA_COST_TRACKING": "ignore_errors",
        "LITELLM_LOCAL_MODEL_COST_MAP": "True",
        # Its terminal library would wrap the lines in which landmarks are found.
        "COLUMNS": "400",
    },
)
