"""Files of a data set on the Hugging Face hub."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from pytest_super.errors import SuperError

EXTRA = "pytest-super[super]"


def fetch(dataset: str, name: str, revision: str) -> tuple[Path, str]:
    """The file in the hub's cache on this machine, and the commit of the revision.

    huggingface_hub reads `HF_ENDPOINT`, `HF_TOKEN` and `HF_HOME`. Raises SuperError.
    """
    try:
        import huggingface_hub.utils
    except ImportError:
        raise SuperError(
            f"the data set is downloaded by huggingface_hub, which is not installed: pip install '{EXTRA}', "
            "or use --from for files that you have"
        ) from None
    # Its types do not cover these functions.
    utils: Any = huggingface_hub.utils
    utils.disable_progress_bars()
    utils.logging.set_verbosity_error()
    try:
        path = huggingface_hub.hf_hub_download(dataset, name, repo_type="dataset", revision=revision)
    except Exception as error:
        # huggingface_hub uses requests or httpx, depending on its version, and passes on their errors.
        raise SuperError(f"{dataset}: {name} at {revision!r} was not downloaded: {reason(error)}") from error
    # The cache stores a file at `snapshots/<commit>/<name>`.
    file = Path(path)
    return file, file.parents[len(Path(name).parts) - 1].name


def reason(error: BaseException) -> str:
    """The reason in one line; the library's own message has several, with the id of a request."""
    from huggingface_hub import errors

    if isinstance(error, errors.LocalEntryNotFoundError):
        below = error.__cause__ or error.__context__
        return "it cannot be downloaded and is not in the cache" + (
            f" ({first_line(below)})" if below else ""
        )
    known = {
        errors.RevisionNotFoundError: "the data set has no such revision",
        errors.GatedRepoError: "the data set asks for a login: set HF_TOKEN",
        errors.RepositoryNotFoundError: "there is no such data set, or it needs a login",
        errors.EntryNotFoundError: "the data set has no such file there",
    }
    return next((words for kind, words in known.items() if isinstance(error, kind)), first_line(error))


def first_line(error: BaseException) -> str:
    return next((line.strip() for line in str(error).splitlines() if line.strip()), type(error).__name__)
