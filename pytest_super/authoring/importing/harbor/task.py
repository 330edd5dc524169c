"""A folder in the form of Harbor as the fields of a task file, with the files that lie next to it."""

import base64
import json
import re
import shlex
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from pytest_super.authoring.importing.harbor.environment import (
    BuiltWorkdir,
    HarborImage,
    TaskSettings,
    Unusable,
    grade_of,
    image_of,
    sandbox_of,
)
from pytest_super.tasks.fields import CATEGORY

SETTINGS, INSTRUCTION, TESTS = "task.toml", "instruction.md", "tests"
SOLUTION = "/solution"
AGENT_SECONDS = 600.0
# Names that need no quotes in the line of a magic.
_PLAIN_NAME = re.compile(r"[\w.-]+")


@dataclass(kw_only=True)
class HarborTask:
    """A task that can be used."""

    fields: dict[str, Any]
    tests: Path | None
    """The folder with the verifier's files; None if its image has them."""
    images: list[HarborImage] = field(default_factory=list)
    remarks: list[str] = field(default_factory=list)

    @property
    def copied(self) -> dict[str, Path]:
        """The verifier's files, by their paths relative to the task file."""
        if self.tests is None:
            return {}
        place = place_of(self.fields["id"])
        return {f"{place}/{path.relative_to(self.tests)}": path for path in files_below(self.tests)}


def place_of(name: str) -> str:
    """The folder of a verifier's files. pytest does not collect tests in hidden folders."""
    return f".{TESTS}/{name}"


def read_task(folder: Path, shown: str, built: BuiltWorkdir) -> HarborTask:
    """Raises Unusable with all reasons."""
    settings = TaskSettings(folder / SETTINGS, f"{shown}/{SETTINGS}")
    tests = folder / TESTS
    if settings.get("steps", list):
        settings.refuse("steps", "divides the task into several steps, which cannot be used")
    elif missing := [name for name in (INSTRUCTION, f"{TESTS}/test.sh") if not (folder / name).is_file()]:
        settings.reasons.append(f"{shown}: there is no {' and no '.join(missing)}")
    image = image_of(settings, "environment", folder / "environment", f"{shown}/environment")
    if image is None:
        settings.reasons.append(f"{shown}: there is neither environment/Dockerfile nor a docker_image")
    if settings.reasons or image is None:
        raise Unusable("\n".join(settings.reasons))
    name = re.sub(r"[^A-Za-z0-9_.,-]", "-", folder.name).lstrip("_.,-")
    workdir = settings.text("environment.workdir") or built(image)
    if workdir is None:
        settings.remarks.append(
            f"{shown}: without its image, its WORKDIR is not known: cells and test.sh start in /workspace"
        )
    grade, verifier_image = grade_of(settings, tests, place_of(name), workdir, built)
    sandbox = {"image": image.name, "network": True, **sandbox_of(settings, "environment")}
    fields = {
        "id": name,
        "set": "expert",
        **described(settings),
        "query": (folder / INSTRUCTION).read_text(encoding="utf-8"),
        "grade": grade,
        # Not the sandbox's own working directory, which is the same for all images.
        **({"pre_execute": [f"%cd {workdir}"]} if workdir else {}),
        **solution_of(folder / "solution", settings),
        "sandbox": sandbox,
        "limits": limits_of(settings),
        "metadata": metadata_of(settings),
    }
    if settings.reasons:
        raise Unusable("\n".join(settings.reasons))
    return HarborTask(
        fields=fields,
        tests=tests if "files" in grade else None,
        images=[image] if verifier_image is None else [image, verifier_image],
        remarks=settings.remarks,
    )


def files_below(folder: Path) -> list[Path]:
    return sorted(path for path in folder.rglob("*") if path.is_file() and not path.is_symlink())


def described(settings: TaskSettings) -> dict[str, Any]:
    category = (settings.text("metadata.category") or "").lower().replace(" ", "-")
    tags = settings.get("task.keywords", list) or settings.get("metadata.tags", list) or []
    words = [word for word in tags if isinstance(word, str) and word.strip()]
    return {
        **({"category": category} if re.match(CATEGORY, category) else {}),
        **({"tags": words} if words else {}),
    }


def metadata_of(settings: TaskSettings) -> dict[str, Any]:
    """The tables `task` and `metadata`. Dates become texts, because JSON has none."""
    tables = {name: settings.get(name, dict) for name in ("task", "metadata")}
    stated = {name: table for name, table in tables.items() if table}
    found: dict[str, Any] = json.loads(json.dumps({"harbor": stated}, default=lambda date: date.isoformat()))
    return found


def limits_of(settings: TaskSettings) -> dict[str, Any]:
    """Harbor limits only the agent's total time, so cells can take all of it."""
    for key in ("user", "network_mode"):
        if settings.get(f"agent.{key}", object) not in (None, "root"):
            settings.remark(f"agent.{key}", "is not used")
    seconds = float(settings.number("agent.timeout_sec") or AGENT_SECONDS)
    return {"compute": seconds, "wall": seconds}


def solution_of(folder: Path, settings: TaskSettings) -> dict[str, Any]:
    """Cells that write the files of the reference solution and run it."""
    if not (folder / "solve.sh").is_file():
        return {}
    cells = [f"!mkdir -p {SOLUTION}"]
    for path in files_below(folder):
        cells.append(writing(f"{SOLUTION}/{path.relative_to(folder).as_posix()}", path.read_bytes()))
    variables = "".join(
        f"{name}={shlex.quote(value)} " for name, value in settings.variables("solution.env").items()
    )
    # Into a file, because a cell does not end while a process in the background has its output.
    run = f"{variables}bash {SOLUTION}/solve.sh > {SOLUTION}/output.txt 2>&1"
    return {
        "solution": {"cells": [*cells, f"%%sh\n{run}\nstatus=$?\ncat {SOLUTION}/output.txt\nexit $status"]}
    }


def writing(path: str, data: bytes) -> str:
    """A cell that writes a file: readable if it is text that a cell leaves as it is."""
    try:
        text = data.decode()
    except UnicodeDecodeError:
        text = ""
    if text.strip() and text.endswith("\n") and _PLAIN_NAME.fullmatch(path.removeprefix(f"{SOLUTION}/")):
        return f"%%writefile {path}\n{text}"
    encoded = base64.b64encode(data).decode()
    return (
        "import base64, pathlib\n"
        f"file = pathlib.Path({path!r})\n"
        "file.parent.mkdir(parents=True, exist_ok=True)\n"
        f"_ = file.write_bytes(base64.b64decode({encoded!r}))"
    )
