"""The reasons for which a repository yields no task."""

from __future__ import annotations

# In the order in which they are checked.
REASONS = {
    "fetch_failed": "could not be found, fetched or unpacked",
    "llm_api": "imports the package of an LLM provider",
    "no_readme": "has no README at its top",
    "no_script": "has no Python or shell file",
    "no_supported_dataset": "q_supported_dataset: runs on none of the data sets",
    "needs_gpu": "q_cpu: cannot run on a CPU",
    "no_model_family": "q_model_families: works with none of the models",
    "no_execute_example": "q_execute_example: its README runs no script",
    "skipped": "the model found no task in it",
    "entrypoint_missing": "the model's script is not in it",
    "entrypoint_type": "the model's script is neither Python nor shell",
    "bad_answer": "the model's answer could not be used, twice",
    "model_refused": "the model's provider refused to read it, or it was too long",
    "model_failed": "the model gave no answer",
}
# Temporary reasons: the next run processes such a repository again.
PASSING = frozenset({"fetch_failed", "model_failed"})


class RepositoryRefused(Exception):
    """`reason` is a key of REASONS; the text says what was found."""

    def __init__(self, reason: str, detail: str) -> None:
        super().__init__(detail)
        self.reason = reason
