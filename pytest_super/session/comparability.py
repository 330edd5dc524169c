"""Whether trials can be compared: digests of what must be equal, of what is tried, of how it is scored."""

from collections.abc import Iterable, Mapping, Sequence
from functools import lru_cache
from pathlib import Path
from typing import Any

from pytest_super.agents.identity import contents_of, is_in_image
from pytest_super.digests import digest, file_digest, tree_of
from pytest_super.metrics import Metric
from pytest_super.metrics.registry import REFERENCE, headline_of, is_headline
from pytest_super.model.settings import SCRIPTED
from pytest_super.programs.installed.agent import Additions
from pytest_super.session.settings import Settings
from pytest_super.store.results import TrialResult
from pytest_super.tasks.paper import graded_by
from pytest_super.tasks.task import TOKEN_BUDGETS, Task

# The fields of a task by what they decide. The others describe it, or make tasks of it.
CONDITIONS = {
    "query": {"set", "query"},
    "repository": {"repository"},
    "prefix": {"pre_execute"},
    "limits": {"limits"},
    "sandbox": {"sandbox"},
    "paper": {"paper"},
}
"""By the name of the condition."""
SCORING = frozenset({
    "answer", "answer_unknown", "tolerance", "landmarks", "entrypoint", "grade", "aggregate", "weight",
})  # fmt: skip
# The facts of a sandbox that decide a trial.
AROUND = ("sandbox", "software", "environment")
# Characters of the digest of one condition.
LENGTH = 12


def conditions_of(task: Task, sandbox: Mapping[str, Any]) -> str:
    """Digests of everything around the agent, as `NAME=DIGEST` for each condition.

    Only trials in which it is equal can be compared. `sandbox` has the facts of the trial's sandbox. Paths,
    hosts and our own version are not among them.
    """
    further = {
        "query": missing_in(task),
        "repository": folder_of(task),
        "limits": [TOKEN_BUDGETS[task.set], task.limits.wall_or_default],
        "sandbox": dict(sandbox),
        "paper": "" if task.paper is None else digest_of_file(task.folder / task.paper.file),
    }
    parts = {
        name: digest([task.model_dump(mode="json", include=fields), further.get(name)])[:LENGTH]
        for name, fields in CONDITIONS.items()
    }
    return " ".join(f"{name}={part}" for name, part in parts.items())


def scoring_of(task: Task, metrics: Iterable[Metric], mode: str) -> str:
    """A digest of everything that decides whether the task is solved, and that the agent does not see."""
    fields = task.model_dump(mode="json", include=set(SCORING))
    headline = {one.name: version_of(one, task, mode) for one in metrics if is_headline(one, task, mode)}
    # What the paper states decides only as the expected value of a check.
    checks = [one.model_dump(mode="json", exclude={"paper", "graded_by"}) for one in task.experiments]
    return digest([fields, checks, hidden_files(task), headline, mode])


def version_of(metric: Metric, task: Task, mode: str) -> int:
    """What the published code computes never changes."""
    return 1 if mode == REFERENCE and metric.reference is not None else metric.version_for(task)


def facts_of_scoring(task: Task, metrics: Sequence[Metric], mode: str) -> dict[str, Any]:
    """The fields of a result that say how it is scored, known before the trial."""
    applicable = [metric for metric in metrics if metric.applies(task)]
    return {
        "scoring": scoring_of(task, metrics, mode),
        "headline": headline_of(metrics, task, mode),
        "weight": task.weight,
        "graded_by": graded_by(task.experiments),
        "applicable": [metric.name for metric in applicable],
        "metric_versions": {metric.name: version_of(metric, task, mode) for metric in applicable},
    }


def subject_of(settings: Settings, base: Path, root: Path) -> dict[str, Any]:
    """What is tried: it may differ between runs that are compared.

    `base` is the working directory, `root` the folder below which all code is the user's.
    """
    agent, (model, script) = settings.for_agent, model_of(settings)
    return {
        "agent": settings.agent,
        "contents": contents_of(settings.agent, base, root),
        "trajectory": digest_of_file(agent.trajectory) if agent.trajectory else "",
        "model": model,
        "script": script,
        "parameters": dict(settings.model_parameters),
        "prompt": digest(agent.prompt) if agent.prompt else "",
        "additions": additions_of(agent.additions),
        "retrieval": [agent.retrieval.source, agent.retrieval.tokens],
        "attempts": settings.attempts,
        # Not at all without a fork: the digest of a subject is that of older runs.
        **({"forked_from": settings.forked_from} if settings.forked_from else {}),
    }


def additions_of(additions: Additions) -> dict[str, Any]:
    """What the user adds to an agent's program, without what is not given."""
    given = {
        "arguments": list(additions.arguments),
        "files": digest_of_file(additions.files) if additions.files else "",
        "environment": dict(additions.environment),
    }
    return {name: value for name, value in given.items() if value}


def model_of(settings: Settings) -> tuple[str | None, str]:
    """The model's name, and for a scripted one the content of its script, whose path does not matter."""
    name = settings.model
    if name is None or not name.startswith(SCRIPTED):
        return name, ""
    path = Path(name.removeprefix(SCRIPTED))
    return f"{SCRIPTED}{path.name}", digest_of_file(path)


def digests_of_trial(task: Task, subject: Mapping[str, Any], sandbox: Mapping[str, Any]) -> dict[str, str]:
    """The fields of a result that are known when the sandbox is made. `sandbox` has its facts."""
    around, tried = {name: sandbox[name] for name in AROUND}, dict(subject)
    if version := sandbox.get("agent_version"):
        tried["version"] = version
    if is_in_image(str(subject["agent"])):
        tried["software"] = around.pop("software")
    conditions = conditions_of(task, around)
    if forked_from := subject.get("forked_from"):
        # So nothing compares it with a whole trial.
        conditions += f" fork={digest(forked_from)[:LENGTH]}"
    return {"conditions": conditions, "subject": digest(tried)}


def has_conditions_of(task: Task, stored: TrialResult) -> bool:
    """Whether a trial of the task in the sandbox of the stored one would have the same conditions."""
    around = {name: getattr(stored, name) for name in AROUND}
    subject = {"agent": stored.agent, "forked_from": stored.forked_from}
    return digests_of_trial(task, subject, around)["conditions"] == stored.conditions


def missing_in(task: Task) -> list[Any]:
    """What an item of a paper tells the agent besides the paper's query."""
    if not task.functions:
        return []
    told = [[one.name, one.command, one.description] for one in task.experiments]
    return [[one.model_dump(mode="json") for one in task.functions], told]


def folder_of(task: Task) -> str:
    """A repository in a folder is not pinned: its files can change."""
    if task.repository is None or task.repository.path is None:
        return ""
    return digest_of_file(task.folder / task.repository.path)


@lru_cache(maxsize=64)
def digest_of_folder(path: Path) -> str:
    return digest(tree_of(path))


def hidden_files(task: Task) -> dict[str, str]:
    files: dict[str, str] = {}
    for place, grade in task.grade.steps() if task.grade else ():
        files |= {" ".join((*place, inside)): path for inside, path in grade.files.items()}
    for one in task.experiments:
        files |= {f"{one.name}: {inside}": path for inside, path in one.files.items()}
    return {inside: digest_of_file(task.folder / path) for inside, path in files.items()}


def digest_of_file(path: Path) -> str:
    """ "" for what cannot be read: the trial needs it, and reports that."""
    try:
        return digest_of_folder(path) if path.is_dir() else file_digest(path)
    except OSError:
        return ""
