"""The `task.toml` of a Harbor task, the images and limits of its sandboxes, and its verifier as a grader."""

import re
import shlex
import tomllib
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pytest_super.digests import digest, tree_of
from pytest_super.kernel.providers.docker.image import LAYER, recipe

# A value of this machine's environment, which nobody else has.
_HOST_VALUE = re.compile(r"\$\{\w+")


DOCKERFILE = "Dockerfile"
COMPOSE = ("docker-compose.yaml", "docker-compose.yml", "compose.yaml", "compose.yml")
# Keys that a sandbox of ours has no counterpart of.
_NOT_OFFERED = ("healthcheck", "tpus", "skills_dir", "env_file")
SHARED, SEPARATE = "shared", "separate"
TESTS, LOGS, ARTIFACTS = "/tests", "/logs/verifier", "/logs/artifacts"
REWARD = f"{LOGS}/reward.json"
TIMEOUT = 600.0
# As Harbor 0.26 reads them: `.5`, `+1` and true are numbers, and next to anything else no number counts. Of
# several named rewards none is the score unless it is called so. The kernel needs this Python, too.
READ_REWARD = f"""python3 - <<'END'
import json, math, os
os.chdir("{LOGS}")
name = next(filter(os.path.exists, ("reward.json", "reward.txt")), None) or exit("there is no reward")
with open(name) as file:
    text = file.read()
os.remove(name)
try:
    rewards = json.loads(text) if name == "reward.json" else {{"reward": float(text)}}
    rewards = {{key: value * 1.0 for key, value in rewards.items()}}
    score = rewards.get("reward", sum(rewards.values()) / len(rewards))
    assert all(map(math.isfinite, rewards.values()))
except Exception:
    raise ValueError(f"{{name}} does not have finite numbers alone: {{text[:80]!r}}") from None
if score > 1:
    raise ValueError(f"the reward {{score}} is over 1: let test.sh divide it by the largest that there is")
with open("reward.json", "w") as file:
    json.dump({{"reward": score}}, file)
END"""


class Unusable(Exception):
    """A task that cannot be used; one reason a line, each with its place."""


class TaskSettings:
    """The values of a `task.toml`. Keys that nobody asks for are ignored, as the format says."""

    def __init__(self, path: Path, shown: str) -> None:
        """Raises Unusable for a file that cannot be read."""
        self._shown = shown
        self.remarks: list[str] = []
        """What the file says that the imported task does not do, each with its place."""
        self.reasons: list[str] = []
        """Why the task cannot be used, each with its place."""
        try:
            self.data = tomllib.loads(path.read_text(encoding="utf-8"))
        except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError, RecursionError) as error:
            raise Unusable(f"{shown}: cannot be read: {error}") from None

    def get(self, name: str, kind: type | tuple[type, ...]) -> Any:
        """The value at a dotted name; None if there is none, or if it has another type, which is a reason."""
        value: Any = self.data
        for part in name.split("."):
            if not isinstance(value, dict) or part not in value:
                return None
            value = value[part]
        # A TOML boolean is an `int` in Python.
        if isinstance(value, kind) and (kind in (bool, object) or not isinstance(value, bool)):
            return value
        self.refuse(name, f"has a value of another type than the format says: {value!r}")
        return None

    def number(self, name: str) -> float | None:
        value: float | None = self.get(name, (int, float))
        return value

    def text(self, name: str) -> str | None:
        value: str | None = self.get(name, str)
        return value

    def variables(self, name: str) -> dict[str, str]:
        """Variables of an environment, without those whose value comes from the machine, with a remark."""
        given = {key: str(value) for key, value in (self.get(name, dict) or {}).items()}
        for key, value in given.items():
            if _HOST_VALUE.search(value):
                self.remark(f"{name}.{key}", "is not set, because its value comes from the machine")
        return {key: value for key, value in given.items() if not _HOST_VALUE.search(value)}

    def remark(self, name: str, what: str) -> None:
        self.remarks.append(f"{self._shown}: `{name}` {what}")

    def refuse(self, name: str, why: str) -> None:
        self.reasons.append(f"{self._shown}: `{name}` {why}")


@dataclass(frozen=True, kw_only=True)
class HarborImage:
    """An image with a kernel on top: of a folder with a Dockerfile, or of another image."""

    folder: Path | None
    base: str | None

    @property
    def name(self) -> str:
        """The name depends on the content alone, so an image that is there is not built again."""
        files = {name: data.hex() for name, data in recipe(LAYER).items()}
        content = tree_of(self.folder) if self.folder else self.base
        return f"pytest-super-harbor:{digest([content, files])[:12]}"


BuiltWorkdir = Callable[[HarborImage], str | None]
"""The working directory of an image, which it builds; None if no image is built."""


def image_of(settings: TaskSettings, table: str, folder: Path, shown: str) -> HarborImage | None:
    """The image that a table and the folder next to it describe, if any; no compose file can be used."""
    settings.reasons.extend(
        f"{shown}/{name}: several containers (compose) cannot be used"
        for name in COMPOSE
        if (folder / name).exists()
    )
    # As in Harbor, a prebuilt image comes before a Dockerfile.
    base = settings.text(f"{table}.docker_image")
    if base:
        return HarborImage(folder=None, base=base)
    return HarborImage(folder=folder, base=None) if (folder / DOCKERFILE).is_file() else None


def sandbox_of(settings: TaskSettings, table: str) -> dict[str, Any]:
    """The fields of `sandbox` that an environment's table states."""
    for key in _NOT_OFFERED:
        if settings.get(f"{table}.{key}", object):
            settings.remark(f"{table}.{key}", "is not used: sandboxes do not have it")
    if settings.get(f"{table}.mcp_servers", list):
        settings.refuse(f"{table}.mcp_servers", "names hosted tools, which cannot be used")
    if (system := settings.text(f"{table}.os")) not in (None, "linux"):
        settings.refuse(f"{table}.os", f"is {system}: only Linux can be used")
    fields = {
        "cpus": settings.number(f"{table}.cpus"),
        "memory": size_of(settings, table, "memory"),
        "disk": size_of(settings, table, "storage"),
        "gpus": settings.get(f"{table}.gpus", int) or None,
        "env": settings.variables(f"{table}.env"),
        "network": network_of(settings, table),
    }
    return {name: value for name, value in fields.items() if value not in (None, {})}


def size_of(settings: TaskSettings, table: str, what: str) -> str | None:
    """`memory_mb`, or its old spelling: `memory = "2G"`."""
    if (megabytes := settings.number(f"{table}.{what}_mb")) is not None:
        return f"{int(megabytes)}m"
    text = settings.text(f"{table}.{what}")
    return text.lower().removesuffix("b").removesuffix("i") if text else None


def network_of(settings: TaskSettings, table: str) -> bool | None:
    """Say whether the table gives a network; None if it does not say."""
    mode = settings.text(f"{table}.network_mode")
    if mode is None:
        allowed: bool | None = settings.get(f"{table}.allow_internet", bool)
        return allowed
    if mode not in ("public", "no-network"):
        settings.remark(
            f"{table}.network_mode", f"is {mode}, which is not offered: the whole network is there"
        )
    return mode != "no-network"


def grade_of(
    settings: TaskSettings, tests: Path, place: str, workdir: str | None, built: BuiltWorkdir
) -> tuple[dict[str, Any], HarborImage | None]:
    """The fields of `grade` for the tests at `place`, and the verifier's own image, if any."""
    for key in ("user", "collect", "network_mode"):
        if settings.get(f"verifier.{key}", object) not in (None, "root"):
            settings.remark(f"verifier.{key}", "is not used")
    table, mode = "verifier.environment", settings.text("verifier.environment_mode")
    if mode not in (None, SHARED, SEPARATE):
        settings.refuse("verifier.environment_mode", f"is neither {SHARED} nor {SEPARATE}")
    # A table for the verifier's environment means a separate one, unless the mode is stated.
    is_shared = mode == SHARED if mode else not settings.get(table, dict)
    image = None if is_shared else image_of(settings, table, tests, f"{tests.parent.name}/tests")
    if image is not None:
        workdir = settings.text(f"{table}.workdir") or built(image)
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
    return f"{' && '.join(lines)} && bash {TESTS}/test.sh\n{READ_REWARD}"


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
