"""Writes JSON values as YAML that is readable and that `yaml_reader` reads back as the same values."""

import re
from collections.abc import Mapping
from typing import Any

import yaml

from pytest_super.tasks.yaml_scalars import STR

# Characters that need no escape: not the byte order mark, and not those that YAML 1.1 reads as line ends.
_VISIBLE = r" -~\xa0-\u2027\u202a-\ud7ff\ue000-\ufefe\uff00-\ufffd\U00010000-\U0010ffff"
_LINE = re.compile(f"[{_VISIBLE}]*")
# Not with a tab at the start, for which PyYAML writes no indentation indicator.
_BLOCK = re.compile(rf"(?!\t)[{_VISIBLE}\t\n]*")
# A colon is plain only before a slash, as in a URL: before a blank it would end a key.
_PLAIN = re.compile(r"(?:[A-Za-z_]|/(?=\w))(?:[\w./+-]|:(?=/))*(?: (?:[\w./+-]|:(?=/))+)*", re.ASCII)
# Including words that only YAML 1.1 reads as booleans.
_WORDS = frozenset({"null", "true", "false", "yes", "no", "on", "off", "y", "n"})

# Of lines with Flow mappings. Texts are never broken.
WIDTH = 120


class Flow(dict[str, Any]):
    """A mapping of many short values, written on few lines."""


def to_yaml(value: Mapping[str, Any]) -> str:
    """A mapping as a YAML document, with texts of several lines as literal blocks.

    Raises ValueError for a lone surrogate, which UTF-8 cannot encode, RecursionError for recursive values.
    """
    text: str = yaml.dump(value, Dumper=_Writer, sort_keys=False, allow_unicode=True, width=WIDTH)
    return text


class _Writer(yaml.SafeDumper):
    def ignore_aliases(self, _data: Any) -> bool:
        return True

    def increase_indent(self, flow: bool = False, indentless: bool = False) -> None:  # noqa: ARG002
        """Indents lists in mappings, too."""
        super().increase_indent(flow, False)

    def analyze_scalar(self, text: str) -> Any:
        """PyYAML itself writes no block for a text with tabs or with blanks at the end of a line."""
        analysis = super().analyze_scalar(text)
        analysis.allow_block = _BLOCK.fullmatch(text) is not None
        return analysis

    def write_plain(self, text: str, split: bool = True) -> None:  # noqa: ARG002
        super().write_plain(text, split=False)

    def write_single_quoted(self, text: str, split: bool = True) -> None:  # noqa: ARG002
        super().write_single_quoted(text, split=False)

    def write_double_quoted(self, text: str, split: bool = True) -> None:  # noqa: ARG002
        super().write_double_quoted(text, split=False)

    def represent_flow(self, mapping: Flow) -> yaml.MappingNode:
        return self.represent_mapping("tag:yaml.org,2002:map", mapping, flow_style=True)

    def represent_text(self, text: str) -> yaml.ScalarNode:
        return self.represent_scalar(STR, text, style_of(text))


_Writer.add_representer(str, _Writer.represent_text)
_Writer.add_representer(Flow, _Writer.represent_flow)


def style_of(text: str) -> str | None:
    """PyYAML's name of a style: a literal block, plain if every parser reads it as text, else quoted."""
    if any("\ud800" <= character <= "\udfff" for character in text):
        raise ValueError("half of a surrogate pair is not text")
    if "\n" in text.rstrip("\n"):
        return "|"
    if _PLAIN.fullmatch(text) and text.lower() not in _WORDS:
        return None
    # Single quotes need no escapes, which keeps regular expressions legible.
    return "'" if _LINE.fullmatch(text) and "'" not in text else '"'
