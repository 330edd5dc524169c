"""The verifier of a Harbor task as a grader: `test.sh`, and the reward that it writes."""

from __future__ import annotations

import re
import shlex
from typing import TYPE_CHECKING, Any

from pytest_super.authoring.importing.harbor.environment import image_of, sandbox_of, workdir_of

if TYPE_CHECKING:
    from pathlib import Path

    from pytest_super.authoring.importing.harbor.environment import HarborImage
    from pytest_super.authoring.importing.harbor.settings import TaskSettings

SHARED, SEPARATE = "shared", "separate"
TESTS, LOGS, ARTIFACTS = "/tests", "/logs/verifier", "/logs/artifacts"
REWARD = f"{LOGS}/reward.json"
TIMEOUT = 600.0
# The file with a number becomes the JSON file, so that the reward is in one place whichever was written.
READ_REWARD = (
    f"cd {LOGS} && if [ -s reward.txt ]; then "
    'printf \'{"reward": %s}\' "$(cat reward.txt)" > reward.json; fi'
)
# Of several named rewards none is the score unless it is called so. The kernel needs this Python, too.
NAME_REWARD = f"""python3 - <<'END'
import json
with open("{REWARD}") as file:
    rewards = json.load(file)
if isinstance(rewards, dict) and "reward" not in rewards:
    rewards["reward"] = sum(rewards.values()) / len(rewards)
    with open("{REWARD}", "w") as file:
        json.dump(rewards, file)
END"""
# What a trial does not provide, and what its score is made of.
NOTED = {
    re.compile(r"/logs/agent\b"): "/logs/agent is empty: the agent's transcript is not there",
    re.compile(r"\breward\.json\b"): "of several rewards, `reward` is the score, or without it their mean",
}


def mode_of(settings: TaskSettings) -> str:
    """A table for the verifier's environment means a separate one, unless the mode is stated."""
    mode = settings.text("verifier.environment_mode")
    if mode not in (None, SHARED, SEPARATE):
        settings.refuse("verifier.environment_mode", f"is neither {SHARED} nor {SEPARATE}")
    return mode or (SEPARATE if settings.get("verifier.environment", dict) else SHARED)


def grade_of(
    settings: TaskSettings, tests: Path, place: str, workdir: str | None
) -> tuple[dict[str, Any], HarborImage | None]:
    """The fields of `grade`, and the image of the verifier if it has one of its own.

    `place` is where the copied tests are, relative to the task file. `workdir` is that of the agent's image.
    """
    for key in ("user", "collect", "network_mode"):
        if settings.get(f"verifier.{key}", object) not in (None, "root"):
            settings.remark(f"verifier.{key}", "is not used")
    is_shared, table = mode_of(settings) == SHARED, "verifier.environment"
    image = None if is_shared else image_of(settings, table, tests, f"{tests.parent.name}/tests")
    if image is not None:
        workdir = workdir_of(settings, image, table)
    fields = {
        "files": {TESTS: place},
        "command": command(settings.variables("verifier.env"), workdir),
        "timeout": float(settings.number("verifier.timeout_sec") or TIMEOUT),
        "result": [{"name": "reward", "json": {"file": REWARD, "pointer": "/reward"}}],
    }
    if is_shared:
        return {"where": "same", **fields}, None
    sandbox = sandbox_of(settings, table)
    if image is not None and image.folder is not None:
        # An image of the tests has them already, and can have more.
        del fields["files"]
    if image is not None:
        sandbox["image"] = image.name
    collect = [*artifacts_of(settings), ARTIFACTS]
    return {"collect": collect, **fields, **({"sandbox": sandbox} if sandbox else {})}, image


def command(variables: dict[str, str], workdir: str | None) -> str:
    lines = [f"rm -rf {LOGS}", f"mkdir -p {LOGS}"]
    lines += [f"export {name}={shlex.quote(value)}" for name, value in variables.items()]
    lines += [f"cd {shlex.quote(workdir)}"] if workdir else []
    # Its exit code means nothing: the reward decides.
    return f"{' && '.join(lines)} && bash {TESTS}/test.sh; {READ_REWARD}\n{NAME_REWARD}"


def artifacts_of(settings: TaskSettings) -> list[str]:
    """The paths that come out of the agent's sandbox."""
    found = []
    for artifact in settings.get("artifacts", list) or []:
        source = artifact.get("source") if isinstance(artifact, dict) else artifact
        if not isinstance(source, str) or not source.startswith("/"):
            settings.refuse("artifacts", f"has an entry that is not an absolute path: {artifact!r}")
            continue
        if isinstance(artifact, dict) and (unused := sorted(artifact.keys() - {"source"})):
            settings.remark("artifacts", f"of {source}: {', '.join(unused)} is not used")
        found.append(source)
    return list(dict.fromkeys(found))


def noted_lines(tests: Path, shown: str) -> list[str]:
    """The places in a verifier's files that a person should look at."""
    remarks = []
    for path in sorted(tests.rglob("*")):
        if path.suffix not in (".sh", ".py"):
            continue
        lines = path.read_text(encoding="utf-8", errors="replace").splitlines()
        remarks += [
            f"{shown}/{path.relative_to(tests)}:{number}: {what}"
            for number, line in enumerate(lines, 1)
            for pattern, what in NOTED.items()
            if pattern.search(line) and not line.lstrip().startswith("#")
        ]
    return remarks
