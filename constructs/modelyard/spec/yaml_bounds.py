"""The YAML reader within bounds: it stops at the place where a text becomes more than a file of a user can
be.

A text of a hundred bytes can stand for a billion values: every alias repeats what its anchor holds. Values
are therefore counted as a reader of the data would meet them, with each alias as large as what it stands for.
"""

from __future__ import annotations

from typing import Any

from ruamel.yaml import YAML
from ruamel.yaml.composer import Composer
from ruamel.yaml.error import MarkedYAMLError
from ruamel.yaml.events import AliasEvent
from ruamel.yaml.nodes import MappingNode, Node, ScalarNode
from ruamel.yaml.scanner import Scanner

from modelyard.reading import short

MOST_VALUES = 6_000
"""Keys and values of one file, aliases expanded. An environment with 300 overrides and 20 pools has 3,500;
the reader takes 40 µs each."""
MOST_DEPTH = 64
"""Mappings and lists within one another; the objects of Kubernetes have a dozen."""
MOST_LINES = 10_000
"""Of one file, empty ones and comments too: the reader takes as long for them as for values."""
LONGEST_NAME = 256
"""Characters of an anchor, an alias or a tag."""
LONGEST_KEY = 1024
"""Characters of a key; YAML itself allows no more before the colon."""
LONGEST_NUMBER = 40
"""Characters of a number. Python converts thousands of digits in one direction and then refuses the other."""

_CORE = "tag:yaml.org,2002:"
_OF_JSON = frozenset(
    f"{_CORE}{name}" for name in ("null", "bool", "int", "float", "str", "seq", "map", "merge")
)
_PLAIN_ONLY = frozenset(f"{_CORE}{name}" for name in ("bool", "int", "float"))
_MERGE = f"{_CORE}merge"
# The library makes dates of them, as YAML 1.1 did. In 1.2 they are text, from which a field of a date reads
# one.
_TEXT_IN_1_2 = frozenset({_MERGE, f"{_CORE}timestamp", f"{_CORE}value"})


class TooMuch(MarkedYAMLError):
    """The text goes beyond a limit at `problem_mark`."""


class NotPlainData(MarkedYAMLError):
    """The text says something at `problem_mark` that no field can hold."""


def bounded_yaml() -> YAML:
    """A reader of YAML 1.2 that keeps to the limits of this module. It raises `MarkedYAMLError`s."""
    reader = YAML(typ="safe", pure=True)
    reader.Scanner = _Scanner
    reader.Composer = _Composer
    return reader


class _Scanner(Scanner):
    """Tokens. What follows is refused before it is scanned: the library's time grows with its square."""

    def fetch_flow_collection_start(self, TokenClass: Any, to_push: str) -> None:
        if self.flow_level >= MOST_DEPTH:
            raise TooMuch(None, None, _TOO_DEEP, self.reader.get_mark())
        super().fetch_flow_collection_start(TokenClass, to_push)

    def scan_tag(self) -> Any:
        self._refuse_long_name("tag")
        return super().scan_tag()

    def scan_anchor(self, TokenClass: Any) -> Any:
        self._refuse_long_name("anchor or alias")
        return super().scan_anchor(TokenClass)

    def _refuse_long_name(self, what: str) -> None:
        start = self.reader.prefix(LONGEST_NAME + 1)
        if len(start) > LONGEST_NAME and not any(character.isspace() for character in start):
            problem = f"the {what} has more than {LONGEST_NAME} characters"
            raise TooMuch(None, None, problem, self.reader.get_mark())


_TOO_DEEP = f"more than {MOST_DEPTH} mappings and lists within one another"


class _Composer(Composer):
    """Nodes, counted while they are made."""

    def __init__(self, loader: Any = None) -> None:
        super().__init__(loader=loader)
        self.warn_double_anchors = False  # the later one counts, as YAML says
        self._values = 0
        self._deepest = 0
        self._extents: dict[int, tuple[int, int]] = {}  # of what has an anchor: its values, its levels

    def compose_node(self, parent: Any, index: Any) -> Any:
        event = self.parser.peek_event()
        is_key = isinstance(parent, MappingNode) and index is None
        if isinstance(event, AliasEvent):
            self._count_alias(event)
            return self._checked(super().compose_node(parent, index), event, is_key)
        self._count(1, self.depth + 1, event)
        before, outer, self._deepest = self._values, self._deepest, self.depth + 1
        node = super().compose_node(parent, index)
        if event.anchor is not None:
            self._extents[id(node)] = (self._values - before + 1, self._deepest - self.depth)
        self._deepest = max(outer, self._deepest)
        return self._checked(node, event, is_key)

    def _count_alias(self, event: Any) -> None:
        target = self.anchors.get(event.anchor)
        if target is None:  # the library says so
            return
        extent = self._extents.get(id(target))
        if extent is None:
            problem = f"alias *{event.anchor} stands within what it stands for"
            raise NotPlainData(None, None, problem, event.start_mark)
        values, levels = extent
        self._count(values, self.depth + levels, event)
        self._deepest = max(self._deepest, self.depth + levels)

    def _count(self, values: int, depth: int, event: Any) -> None:
        self._values += values
        if self._values > MOST_VALUES:
            problem = f"more than {MOST_VALUES:,} keys and values, aliases expanded"
            raise TooMuch(None, None, problem, event.start_mark)
        if depth > MOST_DEPTH:
            raise TooMuch(None, None, _TOO_DEEP, event.start_mark)

    def _checked(self, node: Node, event: Any, is_key: bool) -> Node:
        if node.tag in _TEXT_IN_1_2 and event.tag in (None, "!") and not (is_key and node.tag == _MERGE):
            node.tag = f"{_CORE}str"
        if node.tag not in _OF_JSON:
            problem = f"the tag {short(str(node.tag).removeprefix(_CORE))} means nothing here"
            raise NotPlainData(None, None, problem, event.start_mark)
        if not isinstance(node, ScalarNode):
            if is_key:
                raise NotPlainData(None, None, "a key is a mapping or a list, not a word", event.start_mark)
            return node
        if is_key and len(node.value) > LONGEST_KEY:
            raise TooMuch(None, None, f"a key has more than {LONGEST_KEY} characters", event.start_mark)
        if node.tag in _PLAIN_ONLY:
            self._check_plain(node, event)
        elif any("\ud800" <= character <= "\udfff" for character in node.value):
            raise NotPlainData(None, None, "a text has half of a surrogate pair", event.start_mark)
        return node

    def _check_plain(self, node: Node, event: Any) -> None:
        """A number, truth value or null that is one: the library fails on `!!int x` and on `-_`."""
        if len(node.value) > LONGEST_NUMBER:
            problem = f"a number of {len(node.value):,} characters; {LONGEST_NUMBER} are the most"
            raise TooMuch(None, None, problem, event.start_mark)
        kind = str(node.tag).removeprefix(_CORE)
        try:
            getattr(self.loader.constructor, f"construct_yaml_{kind}")(node)
        except (LookupError, ValueError):
            problem = f"not a value of type {kind}; quote it where it is text"
            raise NotPlainData(None, None, problem, event.start_mark) from None
