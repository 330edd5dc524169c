"""Checks of a repository before a model is asked: the paper's first filter (SUPER, appendix B.1)."""

from __future__ import annotations

import re
from pathlib import PurePosixPath
from typing import TYPE_CHECKING

from pytest_super.authoring.generate.refusal import RepositoryRefused

if TYPE_CHECKING:
    from pytest_super.sources.tree import Tree

# Import names of the packages of LLM providers, and of packages that wrap several of them.
PROVIDERS = (
    *("ai21", "aleph_alpha_client", "anthropic", "azure.ai.inference", "cerebras", "cohere", "dashscope"),
    *("fireworks", "google.genai", "google.generativeai", "groq", "langchain_anthropic", "langchain_cohere"),
    *("langchain_google_genai", "langchain_google_vertexai", "langchain_mistralai", "langchain_openai"),
    *("litellm", "mistralai", "openai", "qianfan", "replicate", "reka", "together", "vertexai", "voyageai"),
    *("volcenginesdkarkruntime", "writerai", "xai_sdk", "zhipuai"),
)
_NAMES = b"|".join(re.escape(name).encode() for name in PROVIDERS)
# The quantifiers are possessive. Otherwise the search would try all ways to divide the blanks of a long line,
# and no other thread could interrupt it.
_IMPORT = (
    rb"[ \t]*+(?:import[ \t]++(?:[\w. \t]++,)*[ \t]*+(?P<whole>%b)(?![\w])"
    rb"|from[ \t]++(?P<part>%b)(?:\.[\w.]++)?[ \t]++import\b"
    rb"|from[ \t]++google[ \t]++import[ \t]++(?P<google>genai|generativeai)\b)" % (_NAMES, _NAMES)
)
_IMPORTS = {
    ".py": re.compile(rb"^" + _IMPORT, re.MULTILINE),
    # In JSON a line begins at the beginning of a string, or after an escaped line end.
    ".ipynb": re.compile(rb'(?:"|\\n)' + _IMPORT),
}


def screen(tree: Tree) -> None:
    """Raises RepositoryRefused for a repository that uses an LLM's API, or has no README or no script."""
    for path, content in tree.contents(tuple(_IMPORTS)):
        if found := _IMPORTS[PurePosixPath(path).suffix].search(content):
            name = next(group for group in found.groups() if group).decode()
            raise RepositoryRefused("llm_api", f"{path} imports {name}")
    if not tree.readme:
        raise RepositoryRefused("no_readme", "no README at the top, or an empty one")
    if not tree.scripts:
        raise RepositoryRefused("no_script", "no file is Python or shell")
