"""OpenAI's Codex CLI. Seen: docs/reference/agents/codex.md."""

from pytest_super.programs.installed.agent import InstalledAgent
from pytest_super.programs.installed.packages import NpmPackage

# The model's address is known only in the sandbox. The gateway retries; both together would multiply.
PROVIDER = """
name="super",base_url="$OPENAI_BASE_URL",env_key="OPENAI_API_KEY",wire_api="responses",request_max_retries=0,
stream_max_retries=0
""".replace("\n", "").replace('"', '\\"')

CODEX = InstalledAgent(
    name="codex",
    # A static program for each platform: a version of the package itself.
    package=NpmPackage(name="@openai/codex@{version}-linux-{cpu}", program="vendor/*/*/codex"),
    version="0.169.0",
    oldest="0.123.0",
    version_command="{place}/bin/codex --version",
    # With analytics, each end would wait five seconds for a server.
    command=f"""
mkdir -p {{home}}/.codex && {{place}}/bin/codex exec --skip-git-repo-check \
--dangerously-bypass-approvals-and-sandbox --color never -c model_provider=super \
-c "model_providers.super={{{PROVIDER}}}" -c analytics.enabled=false \
-o {{message_file}} -m {{model}} - < {{prompt_file}}""".strip(),
    environment={"CODEX_HOME": "{home}/.codex"},
)
