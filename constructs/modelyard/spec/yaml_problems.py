"""What is wrong with a text that is no YAML, in words for people who do not know how it is scanned.

The keys are libyaml's own messages (0.2.5, scanner.c and parser.c).
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from yaml.error import MarkedYAMLError  # type: ignore[import-untyped]

from modelyard.reading import short

_INDENT = "indent it by spaces, as the lines that it belongs with"
_QUOTE = "put quotes around the value"
_CLOSE = "add what is missing: a comma, or the closing bracket"

PROBLEMS: Mapping[str, tuple[str, str]] = MappingProxyType(
    {
        "found a tab character that violates indentation": ("a tab indents the line", "indent by spaces"),
        "found a tab character where an indentation space is expected": (
            "a tab indents the line",
            "indent by spaces",
        ),
        "could not find expected ':'": (
            "the line is no `key: value`",
            "write a colon and a space after the key, or indent the text that goes on",
        ),
        "mapping values are not allowed in this context": (
            "a key where none can begin: a second `: ` in the line, or an indentation of its own",
            "put quotes around a value with a colon; indent keys as those around them",
        ),
        "mapping keys are not allowed in this context": ("a key where none can begin", _INDENT),
        "block sequence entries are not allowed in this context": (
            "a list's entry where none can begin",
            "begin the list on a line of its own",
        ),
        "did not find expected key": (
            "this does not go on with what stands before it",
            f"{_INDENT}; or {_QUOTE}",
        ),
        "did not find expected '-' indicator": (
            "the line is neither an entry of the list before it nor part of one",
            "begin it with `- `, or indent it as the list's key",
        ),
        "did not find expected ',' or '}'": ("the braces {} before this are not closed", _CLOSE),
        "did not find expected ',' or ']'": ("the brackets [] before this are not closed", _CLOSE),
        "did not find expected node content": ("a value is missing here", "write it, or take the sign out"),
        "did not find expected <document start>": (
            "the line belongs to nothing that stands before it",
            "write one mapping of keys to values",
        ),
        "found unexpected end of stream": ("the quotes that open here are not closed", "close the quotes"),
        "found unexpected document indicator": (
            "the quotes before this are not closed",
            "close the quotes",
        ),
        "found unknown escape character": (
            "no escape that YAML knows within double quotes",
            "use single quotes, or write the backslash twice",
        ),
        "did not find expected hexdecimal number": (
            "an escape without its hexadecimal digits",
            "use single quotes, or write the backslash twice",
        ),
        "found invalid Unicode character escape code": (
            "an escape that stands for no character",
            "write the character itself",
        ),
        "found unexpected ':'": ("a colon within a value", _QUOTE),
        "did not find expected alphabetic or numeric character": (
            "a name is missing after & or *",
            f"{_QUOTE}, or name the anchor",
        ),
        "found undefined tag handle": ("a tag; files hold plain data", _QUOTE),
        "found an indentation indicator equal to 0": (
            "a text block cannot be indented by 0",
            "write | or > alone",
        ),
        "did not find expected comment or line break": (
            "a text block begins on the line after | or >",
            f"begin a new line, or {_QUOTE}",
        ),
        **dict.fromkeys(
            (
                "could not find expected directive name",
                "found unexpected non-alphabetical character",
                "found unknown directive name",
                "did not find expected digit or '.' character",
                "did not find expected version number",
                "found extremely long version number",
                "did not find expected whitespace",
                "found duplicate %YAML directive",
                "found duplicate %TAG directive",
                "found incompatible YAML document",
            ),
            ("a directive: a line that begins with %", "take it out, or put quotes around the value"),
        ),
        **dict.fromkeys(
            (
                "did not find expected whitespace or line break",
                "did not find expected tag URI",
                "did not find the expected '>'",
                "did not find expected '!'",
                "did not find URI escaped octet",
                "found an incorrect leading UTF-8 octet",
                "found an incorrect trailing UTF-8 octet",
            ),
            ("the value begins like an anchor or a tag", _QUOTE),
        ),
    }
)
"""libyaml's message to ours, and the fix."""

_FIX = "correct the YAML at this position"


def explained(error: MarkedYAMLError, text: str) -> tuple[str, str]:
    """What is wrong, and the fix; `text` is what was read."""
    problem = str(error.problem)
    if "cannot start any token" in problem:
        here = text[error.problem_mark.index]
        if here == "\t":
            return "a tab where YAML wants spaces", "indent by spaces"
        return f"no value begins with {here}", _QUOTE
    if problem in PROBLEMS:
        return PROBLEMS[problem]
    said = ": ".join(str(each) for each in (error.context, error.problem) if each)
    return short(" ".join(said.split()) or "not valid YAML", 200), getattr(error, "fix", None) or _FIX
