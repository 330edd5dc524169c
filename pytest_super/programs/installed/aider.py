"""aider. Seen: docs/reference/agents/aider.md."""

from pytest_super.programs.installed.agent import InstalledAgent
from pytest_super.programs.installed.packages import PipPackages

AIDER = InstalledAgent(
    name="aider",
    package=PipPackages(requirements=("aider-chat=={version}",)),
    version="0.86.2",
    oldest="0.80.0",
    version_command="{place}/bin/aider --version",
    # `--yes-always` refuses the commands that the model suggests, so its questions are answered by `yes`. The
    # edit format of models that it does not know, `whole`, has no commands.
    command="""
yes | {place}/bin/aider --model openai/{model} --message-file {prompt_file} --no-git --map-tokens 0 \
--edit-format diff --no-fancy-input --no-pretty --no-stream --no-check-update --no-show-model-warnings \
--no-show-release-notes --no-detect-urls --analytics-disable --chat-history-file {home}/chat.md \
--input-history-file {home}/input""".strip(),
    environment={"LITELLM_LOCAL_MODEL_COST_MAP": "True", "COLUMNS": "400"},
)
