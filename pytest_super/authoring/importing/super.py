"""Rows of SUPER's data set (allenai/super on the Hugging Face hub) as the fields of task files."""

import json
import posixpath
import re
from collections.abc import Callable, Mapping
from typing import Any

from pytest_super.agents.react.format import FormatError, parse_edit
from pytest_super.store.step_values import json_object
from pytest_super.tasks.fields import check_regex, legal_id
from pytest_super.tasks.task import CATEGORIES, TOKEN_BUDGETS

DATASET = "allenai/super"
FILES = {"expert": "tasks/expert.jsonl", "masked": "tasks/masked.jsonl", "auto": "tasks/auto_gen.jsonl"}

# A file without these columns is not the file of the set.
COLUMNS = {
    "expert": ("task_id", "query", "answer", "landmarks"),
    "masked": ("task_id", "query", "answer", "landmarks", "pre_execute_cells"),
    "auto": ("task_id", "query", "entrypoint"),
}

# Ids use other names for two of the paper's categories.
ALIASES = {"customgoal": "goal", "custom": "other"}

# The expert tasks as published. A masked task's id is one of these, a `_` and its category.
EXPERT_IDS = (
    *("acqsurvey", "align-to-distill", "amos", "amrbart", "bert-lnl", "blockskim", "cet", "colbert"),
    *("conv_graph", "curriculum_learning", "data_label_alignment", "dir-gnn", "discodisco", "dpt"),
    *("g-transformer", "galore", "glee", "hype", "inbedder", "linkbert", "logme-nlp", "mbib"),
    *("memorizing-transformers-pytorch", "mera", "mezo", "mixup-amp", "mode-connectivity-plm", "multi3woz"),
    *("parallel-context-windows", "paraphrase-nli", "pet", "pie-perf", "pira", "powerfulpromptft"),
    *("quantifying-stereotypes-in-language", "rah-kbqa", "robust_prompt_classifier", "safetybench", "spa"),
    *("team", "textbox", "transnormerllm", "transpolymer", "unsupervisedhierarchicalsymbolicregression"),
    "upet",
)

_GITHUB_FOLDER = re.compile(r"(https?://github\.com/[^/]+/[^/]+)/(?:tree|blob)/.*")
_COMMIT = re.compile(r"[0-9a-f]{40}")

Warn = Callable[[str], None]


def task_fields(
    row: dict[str, Any], set_name: str, *, sandbox: Mapping[str, Any], warn: Warn
) -> dict[str, Any]:
    """The fields of the row's task file, in `metadata` what no field keeps. Raises ValueError, as below."""
    left = dict(row)
    task_id = id_of(left, warn)
    fields = {
        "id": task_id,
        "set": set_name,
        "category": category_of(task_id, warn) if set_name == "masked" else None,
        "query": text_of(left, "query"),
        "repository": repository(left, warn),
        **answer_fields(left, set_name, warn),
        "landmarks": landmarks(left, warn),
        "entrypoint": entrypoint(left, warn),
        "pre_execute": pre_executed(left, warn),
        "sandbox": dict(sandbox),
        "limits": {"compute": 1800, "cell": 300, "tokens": TOKEN_BUDGETS[set_name]},
        "metadata": left,
    }
    return {name: value for name, value in fields.items() if name == "answer" or value not in (None, [], {})}


def text_of(left: dict[str, Any], name: str) -> str:
    value = left.pop(name, None)
    if not isinstance(value, str) or not value.strip():
        raise ValueError(f"`{name}` has no text")
    return value


def id_of(left: dict[str, Any], warn: Warn) -> str:
    task_id = text_of(left, "task_id")
    legal = legal_id(task_id)
    if legal == task_id:
        return task_id
    if not legal:
        raise ValueError(f"`task_id` {task_id!r} has no character that an id can have")
    warn(f"the id becomes {legal}: ids have letters, digits and `_ . , -`")
    left["task_id"] = task_id
    return legal


def category_of(task_id: str, warn: Warn) -> str:
    """What follows the id of an expert task, which can have a `_` itself; the first between commas."""
    parents = [expert for expert in EXPERT_IDS if task_id.startswith(f"{expert}_")]
    if not parents:
        warn("the id does not begin with the id of an expert task: its category becomes other")
        return "other"
    name = task_id.removeprefix(f"{max(parents, key=len)}_").split(",")[0]
    category = ALIASES.get(name, name)
    if category not in CATEGORIES:
        warn(f"the category {name!r} is not one of the paper's: it becomes other")
        return "other"
    return category


def repository(left: dict[str, Any], warn: Warn) -> dict[str, str] | None:
    """The URL to clone and the commit; None without both."""
    url, commit = left.get("github_repo"), left.get("git_commit")
    if not isinstance(url, str) or not url.strip():
        return None
    if not isinstance(commit, str) or not _COMMIT.fullmatch(commit.strip().lower()):
        warn("no full commit hash: only the query names the repository")
        return None
    git = clone_url(url.strip())
    del left["git_commit"]
    if git == url:
        del left["github_repo"]
    return {"git": git, "commit": commit.strip().lower()}


def clone_url(url: str) -> str:
    """The URL of the repository, for the URL of one of its folders too, which cannot be cloned."""
    if folder := _GITHUB_FOLDER.fullmatch(url):
        return folder[1]
    return f"https://github.com/{url}" if re.fullmatch(r"[\w.-]+/[\w.-]+", url) else url


def answer_fields(left: dict[str, Any], set_name: str, warn: Warn) -> dict[str, Any]:
    """`answer`, or `answer_unknown` if it is missing in a set that has answers."""
    raw = left.get("answer")
    if raw is None or (isinstance(raw, str) and not raw.strip()):
        left.pop("answer", None)
        reason = "no gold answer"
    else:
        value = parsed_answer(raw, warn) if isinstance(raw, str) else raw
        # For an empty one the published code has no accuracy.
        if value not in (None, [], {}):
            del left["answer"]
            return {"answer": value}
        reason = f"the gold answer {raw} has no value"
    if set_name == "auto":
        return {}
    warn(f"{reason}: accuracy is null")
    return {"answer_unknown": True}


def parsed_answer(text: str, warn: Warn) -> Any:
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        warn("`answer` is not JSON: it is kept as text")
        return text


def landmarks(left: dict[str, Any], warn: Warn) -> list[str]:
    """The patterns; one that is not a regular expression is escaped, to match as plain text."""
    patterns = left.get("landmarks") or []
    if not isinstance(patterns, list) or not all(isinstance(pattern, str) for pattern in patterns):
        raise ValueError("`landmarks` should be a list of texts")
    found = [landmark(pattern, warn) for pattern in patterns]
    # Otherwise `metadata` keeps the patterns as they were.
    if found == patterns:
        left.pop("landmarks", None)
    return found


def landmark(pattern: str, warn: Warn) -> str:
    try:
        return check_regex(pattern)
    except ValueError as error:
        warn(f"the landmark {pattern!r} {error}; it is matched as plain text")
        return re.escape(pattern)


def entrypoint(left: dict[str, Any], warn: Warn) -> dict[str, str] | None:
    """The script, as a path inside the repository."""
    raw = left.get("entrypoint")
    if raw is None or (isinstance(raw, str) and not raw.strip()):
        left.pop("entrypoint", None)
        return None
    if not isinstance(raw, str):
        raise ValueError("`entrypoint` should be text")
    path = inside(raw.strip())
    if path == ".":
        raise ValueError(f"`entrypoint` {raw!r} names no file")
    if path == raw:
        del left["entrypoint"]
    elif path != raw.strip():
        warn(f"the entrypoint {raw} becomes {path}, a path in the repository")
    return {"path": path}


def inside(path: str) -> str:
    if not path.startswith("/") and ".." not in path.split("/"):
        return path
    return re.sub(r"^(\.\./)+|^\.\.$", "", posixpath.normpath(path.lstrip("/"))) or "."


def pre_executed(left: dict[str, Any], warn: Warn) -> list[Any]:
    """The cells and edits of the prefix, whose JSON texts `{"type": …, "content": …}` are agents' actions."""
    if (cells := left.get("pre_execute_cells")) is None:
        cells = []
    if not isinstance(cells, list):
        raise ValueError("`pre_execute_cells` should be a list")
    made = [step(cell, f"pre_execute_cells[{index}]", warn) for index, cell in enumerate(cells)]
    found = [part for part in made if part is not None]
    # Otherwise `metadata` keeps the cells as they were.
    if len(found) == len(cells):
        left.pop("pre_execute_cells", None)
    return found


def step(cell: Any, place: str, warn: Warn) -> str | dict[str, Any] | None:
    """The text of a cell, an edit, or None for a step that has no effect."""
    if not isinstance(cell, str):
        raise ValueError(f"`{place}` should be the JSON text of an object with `type` and `content`")
    action = json_object(cell)
    # Any other text is code, even if it is JSON: `[1]` is Python, too.
    if action is None or action.keys().isdisjoint(("type", "content")):
        warn(f"`{place}` is not an action: it is imported as a cell")
        action = {"content": cell}
    kind, content = action.get("type", "execute"), action.get("content")
    if kind == "continue_wait":
        warn(f"`{place}` is a continue_wait: left out, since each cell runs to its end")
        return None
    if kind not in ("execute", "edit") or not isinstance(content, str):
        raise ValueError(f"`{place}` is not a known action: type {kind!r}")
    if not content.strip():
        warn(f"`{place}` is empty: left out")
        return None
    return content if kind == "execute" else {"edit": edit(content, place)}


def edit(content: str, place: str) -> dict[str, str]:
    try:
        change = parse_edit(content)
    except FormatError as error:
        raise ValueError(f"`{place}` is not an edit: {str(error).splitlines()[0]}") from None
    if not change.before:
        raise ValueError(f"`{place}` is an edit that replaces nothing")
    return {"path": change.path, "before": change.before, "after": change.after}
