"""System prompts of the built-in agents, as files."""

from importlib.resources import files


def read_prompt(name: str) -> str:
    """The prompt in the file `<name>.md` of this package."""
    return (files(__package__) / f"{name}.md").read_text(encoding="utf-8")
