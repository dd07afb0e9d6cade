"""HTML elements as text, escaped by construction.

Contract: `el` and `joined` return `Markup`. They escape every child that is not `Markup`, and every attribute value.
`trusted` makes `Markup` without escaping; only the page's own style and script use it. Characters that are not allowed
in HTML are replaced.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

_VOID = frozenset(("meta", "input", "br"))
_ESCAPES = {"&": "&amp;", "<": "&lt;", ">": "&gt;", '"': "&quot;", "'": "&#39;"}
_SPECIAL = re.compile(r"""[&<>"']""")
_FORBIDDEN = re.compile(
    "[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\u200e\u200f\u202a-\u202e\u2066-\u2069\ufdd0-\ufdef\ufffe\uffff]|[\ud800-\udfff]"
)
"""Control characters, marks that change the text direction, and code points that are not characters."""


class Markup(str):
    """HTML that is known to be well-formed and safe."""

    __slots__ = ()


Child = Markup | str | int | None


def escaped(text: str) -> Markup:
    """Return a text escaped for any place in a page."""
    clean = _FORBIDDEN.sub("\N{REPLACEMENT CHARACTER}", text)
    return Markup(_SPECIAL.sub(lambda match: _ESCAPES[match[0]], clean))


def el(name: str, /, *children: Child, **attributes: str | float | bool | None) -> Markup:
    """Return an element; ``data_pool`` is the attribute data-pool, ``class_`` is class; None and False are left out."""
    attribute_text = "".join(
        _attribute(key, value) for key, value in attributes.items() if value is not None and value is not False
    )
    if name in _VOID:
        return Markup(f"<{name}{attribute_text}>")
    return Markup(f"<{name}{attribute_text}>{joined(children)}</{name}>")


def joined(children: Iterable[Child]) -> Markup:
    """Return all children in sequence."""
    parts = (child if isinstance(child, Markup) else escaped(str(child)) for child in children if child is not None)
    return Markup("".join(parts))


def trusted(text: str) -> Markup:
    """Return a text of the page itself as `Markup`; never use this for text from the input."""
    return Markup(text)


def number(value: float) -> str:
    """Return a coordinate with one decimal place."""
    text = f"{value:.1f}"
    return text.removesuffix(".0")


def _attribute(key: str, value: str | float | bool) -> str:
    name = key.rstrip("_").replace("_", "-")
    if value is True:
        return f" {name}"
    return f' {name}="{escaped(number(value) if isinstance(value, float) else str(value))}"'
