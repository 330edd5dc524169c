"""The `task.toml` of an exported task."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pytest_super.tasks.sandbox_spec import SandboxSpec
    from pytest_super.tasks.task import Task

MEBIBYTE = 2**20
# Of the verifier, besides the grader's command.
MARGIN_SECONDS = 60.0


def settings_text(task: Task, artifacts: list[str], *, is_separate: bool) -> str:
    grade = task.grade
    tables: dict[str, dict[str, Any]] = {
        "": {"schema_version": "1.4", "artifacts": artifacts},
        "task": {"name": f"pytest-super/{task.id}", "keywords": task.tags},
        "metadata": {"category": task.category, "set": task.set},
        "agent": {"timeout_sec": task.limits.wall_or_default},
        "verifier": {
            "timeout_sec": (grade.timeout if grade else 0) + MARGIN_SECONDS,
            "environment_mode": "separate" if is_separate else "shared",
        },
        "environment": environment(task.sandbox),
        "environment.env": task.sandbox.env,
    }
    if grade and grade.sandbox is not None:
        merged = task.sandbox.model_copy(update=stated(grade.sandbox))
        tables["verifier.environment"] = environment(merged)
        tables["verifier.environment.env"] = merged.env
    return "\n".join(filter(None, (table_text(name, values) for name, values in tables.items())))


def stated(spec: SandboxSpec) -> dict[str, Any]:
    return {name: getattr(spec, name) for name in spec.model_fields_set}


def environment(spec: SandboxSpec) -> dict[str, Any]:
    return {
        "cpus": spec.cpus,
        "memory_mb": megabytes(spec.memory),
        "storage_mb": megabytes(spec.disk),
        "gpus": spec.gpus,
        "network_mode": "public" if spec.network else "no-network",
    }


def megabytes(size: int | None) -> int | None:
    """Rounded up."""
    return None if size is None else -(-size // MEBIBYTE)


def table_text(name: str, values: dict[str, Any]) -> str:
    """Without the values that are None; "" for a table without values."""
    # Texts, numbers and lists of texts are written alike in TOML and JSON, except the character 127.
    lines = [
        f"{key} = {json.dumps(value, ensure_ascii=False)}".replace("\x7f", "\\u007f")
        for key, value in values.items()
        if value is not None
    ]
    header = [f"[{name}]"] if name and lines else []
    return "".join(f"{line}\n" for line in [*header, *lines])
