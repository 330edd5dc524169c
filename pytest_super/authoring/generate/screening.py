"""The reasons for which a repository yields no task, and those that show before a model is asked."""

import re
from pathlib import PurePosixPath

from pytest_super.sources.tree import Tree

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
    "bad_answer": "the model's answer could not be used",
    "model_failed": "the model gave no answer",
}
# Temporary reasons: the next run processes such a repository again.
TEMPORARY = frozenset({"fetch_failed", "model_failed"})
_PROVIDERS = (
    rb"ai21|anthropic|cohere|dashscope|fireworks|google\.genai|google\.generativeai|groq|langchain_anthropic|"
    rb"langchain_openai|litellm|mistralai|openai|replicate|together|vertexai|voyageai|zhipuai"
)
# The quantifiers are possessive: otherwise the search would try all ways to divide a long line's blanks.
_IMPORT = rb"[ \t]*+(?:import[ \t]++|from[ \t]++(?=[\w.]++[ \t]++import\b))(%b)(?!\w)" % _PROVIDERS
_IMPORTS = {
    ".py": re.compile(rb"^" + _IMPORT, re.MULTILINE),
    # In JSON a line begins at the beginning of a string, or after an escaped line end.
    ".ipynb": re.compile(rb'(?:"|\\n)' + _IMPORT),
}


class RepositoryRefused(Exception):
    """`reason` is a key of REASONS; the text says what was found."""

    def __init__(self, reason: str, detail: str) -> None:
        super().__init__(detail)
        self.reason = reason


def screen(tree: Tree) -> None:
    """Raises RepositoryRefused for a repository that uses an LLM's API, or has no README or no script."""
    for path, content in tree.contents(tuple(_IMPORTS)):
        if found := _IMPORTS[PurePosixPath(path).suffix].search(content):
            raise RepositoryRefused("llm_api", f"{path} imports {found[1].decode()}")
    if not tree.readme:
        raise RepositoryRefused("no_readme", "no README at the top, or an empty one")
    if not tree.scripts:
        raise RepositoryRefused("no_script", "no file is Python or shell")
