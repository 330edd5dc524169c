"""Reads the YAML of task files: scalars as in JSON and YAML 1.2, and errors with line and column."""

import operator
import os
import re
from collections.abc import Container, Iterator
from pathlib import Path
from typing import Any, AnyStr

import yaml
from yaml import MappingNode, ScalarNode

from pytest_super.reading import open_regular
from pytest_super.tasks.yaml_scalars import SPECIAL, STR, TAG, construct, tag_of, unknown_tag

SEQ, MAP = TAG + "seq", TAG + "map"

MAX_BYTES = 16 * 2**20
# Of a task, where aliases can expand a small file to any size.
MAX_VALUES = 200_000
# Of a file's text, where keys are nodes, too. Each takes microseconds, and hundreds of bytes of memory.
MAX_NODES = 2 * MAX_VALUES
MAX_DEPTH = 100
# Up to this depth the C parser can recurse without a check. The Python parser overflows earlier.
UNCOUNTED_DEPTH = 1_000 if hasattr(yaml, "CSafeLoader") else 0
OPENERS = "[{-?:"  # Each level of nesting needs at least one of them.
# Matches are rare. After one, a second scan checks whether it is a tag or part of a text.
# The lookbehind comes after its `!`, so that `re` looks for a literal first, which is 20 times faster.
MAYBE_BARE_TAG = re.compile(r"!(?<![^\s,\[{:]!)(?:<!>)?(?![^\s,\]}])")
Location = tuple[str | int, ...]

# The value of these fields is their source text: an arXiv id 2205.00048 or a version 1.10 is not a number.
TEXT_FIELDS = {("id",), ("repository", "version"), ("repository", "commit"), ("repository", "sha256")}

MERGE = "<<"
# For these errors PyYAML's problem mark is the end of the file; its context mark is the place to fix.
UNCLOSED = ("found unexpected end of stream", "found unexpected document")


class Loader(getattr(yaml, "CSafeLoader", yaml.SafeLoader)):  # type: ignore[misc]
    """PyYAML's parser, in C if available, with the plain scalars of YAML 1.2."""

    # Called around every node, for paths that we do not resolve. These do nothing, too, and are in C.
    descend_resolver: Any = operator.is_
    ascend_resolver: Any = bool

    def resolve(self, kind: type[yaml.Node], value: str | None, implicit: Any) -> str:
        """The tag of a node without an explicit tag. Called for every node, so it is written for speed."""
        if kind is not ScalarNode:
            return MAP if kind is MappingNode else SEQ
        # `implicit[0]` is false for quoted scalars.
        if value is None or not implicit[0] or (value and value[0] not in SPECIAL):
            return STR
        return tag_of(value)


class BoundedLoader(Loader):
    """Limits the nodes of a text, and their depth: recursive composition could overflow the stack."""

    depth = nodes = 0

    def descend_resolver(self, parent: yaml.Node | None, _index: Any) -> None:
        """Called before each node is composed."""
        self.depth += 1
        self.nodes += 1
        if self.nodes > MAX_NODES:
            raise Unreadable(1, 1, TOO_MANY)
        # One more, for a scalar in the deepest list or mapping.
        if self.depth > MAX_DEPTH + 1 and parent is not None:
            raise unreadable(parent.start_mark, TOO_DEEP)

    def ascend_resolver(self) -> None:
        self.depth -= 1


PARSERS_DEPTH = "exceeded maximum nesting depth"  # libyaml 0.2.6 and later, beyond 1,000 levels
TOO_DEEP = f"lists and mappings are nested more than {MAX_DEPTH} deep"
TOO_MANY = f"the file has more than {MAX_NODES:,} keys and values: keep data in other files"


class Unreadable(Exception):
    """One error in a file: the text is not valid, or not accepted; line and column count from 1."""

    def __init__(self, line: int, column: int, message: str) -> None:
        super().__init__(line, column, message)
        self.line, self.column, self.message = line, column, message


def unreadable(mark: Any, message: str) -> Unreadable:
    """The error at one of PyYAML's marks, which count from 0."""
    return Unreadable(mark.line + 1, mark.column + 1, message)


def read_text(path: Path) -> str:
    try:
        with open_regular(path) as file:
            size = os.fstat(file.fileno()).st_size
            # Not always MAX_BYTES + 1, because `read` first allocates a buffer of the requested size.
            data = file.read(min(size, MAX_BYTES) + 1)
    except OSError as error:
        raise Unreadable(1, 1, f"cannot be read: {error.strerror}") from None
    if len(data) > MAX_BYTES:
        message = f"the file has {size:,} bytes, but the limit is {MAX_BYTES:,}: keep data in other files"
        raise Unreadable(1, 1, message)
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line, column = position(data, error.start, b"\n")
        message = f"not UTF-8 (byte 0x{data[error.start]:02x}): save the file as UTF-8"
        raise Unreadable(line, column, message) from None


def documents(text: str) -> Iterator[yaml.Node]:
    """The nodes of the documents that are not empty. Raises Unreadable, for a bare tag `!` at the end."""
    # The loader that counts makes loading a tenth slower. Two characters, as in `?,`, can make three nodes.
    is_small = len(text) <= MAX_VALUES and sum(map(text.count, OPENERS)) <= UNCOUNTED_DEPTH
    try:
        for node in yaml.compose_all(text, Loader=Loader if is_small else BoundedLoader):
            if not is_empty(node):
                yield node
        # The nodes lose a bare tag, and `! '5'` would become a number.
        for token in yaml.scan(text, Loader=Loader) if MAYBE_BARE_TAG.search(text) else ():
            if isinstance(token, yaml.TagToken) and token.value == (None, "!"):
                raise unreadable(token.start_mark, unknown_tag("!"))
    except yaml.MarkedYAMLError as error:
        said = ", ".join(part for part in (error.context, error.problem) if part)
        message = TOO_DEEP if said.endswith(PARSERS_DEPTH) else f"broken YAML: {said}"
        is_unclosed = error.context_mark and (error.problem or "").startswith(UNCLOSED)
        mark = error.context_mark if is_unclosed else error.problem_mark or error.context_mark
        raise unreadable(mark, message) from None
    except yaml.reader.ReaderError as error:
        line, column = position(text, error.position, "\n")
        raise Unreadable(line, column, f"broken YAML: {error.reason}") from None


def position(text: AnyStr, index: int, newline: AnyStr) -> tuple[int, int]:
    return text.count(newline, 0, index) + 1, index - text.rfind(newline, 0, index)


def is_empty(node: yaml.Node | None) -> bool:
    return node is None or (isinstance(node, ScalarNode) and node.tag == TAG + "null" and not node.value)


class Reader:
    """Converts nodes to plain JSON values; refuses duplicate keys, unknown tags and recursive aliases.

    Raises Unreadable. If a subclass overrides `refuse` to return, a refused value becomes None and reading
    continues.
    """

    def __init__(self) -> None:
        self.count = 0
        self.path: list[yaml.Node] = []
        """The lists and mappings being read, the outermost first."""

    def value(self, node: yaml.Node, location: Location | None = ()) -> Any:
        """The value of a node. `location` is None when it is deeper than all TEXT_FIELDS."""
        if isinstance(node, ScalarNode):
            if node.tag == STR:
                return node.value
            value = self.scalar(node)
            is_text = location and (location in TEXT_FIELDS or location[:2] == ("sandbox", "env"))
            return node.value if is_text else value
        self.enter(node)
        if isinstance(node, MappingNode):
            result: Any = self.mapping(node, location)
        else:
            result = [self.value(child, None) for child in node.value]
        self.path.pop()
        return result

    def enter(self, node: yaml.Node) -> None:
        self.count += len(node.value)
        self.path.append(node)
        # The depth is checked here as well, because aliases can nest values deeper than the text does.
        if self.count > MAX_VALUES or len(self.path) > MAX_DEPTH:
            raise self.too_large(node)
        if node.tag != (MAP if type(node) is MappingNode else SEQ):
            self.refuse(node, unknown_tag(node.tag))

    def too_large(self, node: yaml.Node) -> Unreadable:
        for index, outer in enumerate(self.path):
            if any(outer is inner for inner in self.path[index + 1 :]):
                return unreadable(outer.start_mark, "this value contains itself, by an alias")
        if self.count > MAX_VALUES:
            message = f"more than {MAX_VALUES:,} values once aliases are expanded"
            return unreadable(node.start_mark, message)
        return unreadable(node.start_mark, TOO_DEEP)

    def mapping(self, node: MappingNode, location: Location | None) -> dict[str, Any]:
        result: dict[str, Any] = {}
        is_deep = location is None or len(location) > 2
        for key, child in node.value:
            name = key.value
            # Most keys and values are strings and take no call: there are thousands of files.
            if key.tag != STR or type(key) is not ScalarNode or name in result or name == MERGE:
                name = self.key(key, result)
            if name is None:
                continue
            if child.tag == STR and type(child) is ScalarNode:
                result[name] = child.value
            else:
                result[name] = self.value(child, None if is_deep else (*location, name))  # type: ignore[misc]
        return result

    def key(self, node: yaml.Node, known: Container[str]) -> str | None:
        """The key's text, or None if the key is refused; its value is dropped then."""
        if not isinstance(node, ScalarNode):
            self.refuse(node, "a key must be plain text")
            return None
        name: str = node.value
        if name in known:
            self.refuse(node, f"the key `{name}` appears twice")
            return None
        if node.tag != STR:
            self.scalar(node)
        # A quoted `<<` is an ordinary key, as in JSON.
        elif name == MERGE and not node.style:
            self.refuse(node, "merge keys (`<<`) are not supported: write the merged keys out")
            return None
        return name

    def scalar(self, node: ScalarNode) -> Any:
        try:
            return construct(node.tag, node.value)
        except ValueError as error:
            self.refuse(node, str(error))
            return None

    def refuse(self, node: yaml.Node, message: str) -> None:
        raise unreadable(node.start_mark, message)
