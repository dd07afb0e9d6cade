"""Elements of a page as text, escaped by construction.

Contract: `el` gives `Markup`; a child that is `Markup` is taken as it is, any other is text and is escaped, and so is
the value of every attribute. Nothing else makes `Markup` but `joined` and `trusted`, which is for the page's own style
and script. Characters that no page may have are replaced.
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
"""Control characters, marks that turn the direction of a line, and what is not a character."""


class Markup(str):
    """HTML that is known to be well-formed and safe."""

    __slots__ = ()


Child = Markup | str | int | None


def escaped(text: str) -> Markup:
    """A text as it may stand anywhere in a page."""
    clean = _FORBIDDEN.sub("\N{REPLACEMENT CHARACTER}", text)
    return Markup(_SPECIAL.sub(lambda found: _ESCAPES[found[0]], clean))


def el(name: str, /, *children: Child, **attributes: str | float | bool | None) -> Markup:
    """An element. ``class_`` is the attribute class, ``data_pool`` is data-pool; None and False leave one out."""
    said = "".join(
        _attribute(key, value) for key, value in attributes.items() if value is not None and value is not False
    )
    if name in _VOID:
        return Markup(f"<{name}{said}>")
    return Markup(f"<{name}{said}>{joined(children)}</{name}>")


def joined(children: Iterable[Child]) -> Markup:
    """Children one after the other."""
    parts = (child if isinstance(child, Markup) else escaped(str(child)) for child in children if child is not None)
    return Markup("".join(parts))


def trusted(text: str) -> Markup:
    """The page's own text; never anything from the input."""
    return Markup(text)


def number(value: float) -> str:
    """A coordinate: a tenth of a pixel is enough."""
    text = f"{value:.1f}"
    return text.removesuffix(".0")


def _attribute(key: str, value: str | float | bool) -> str:
    name = key.rstrip("_").replace("_", "-")
    if value is True:
        return f" {name}"
    return f' {name}="{escaped(number(value) if isinstance(value, float) else str(value))}"'
