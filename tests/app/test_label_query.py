"""Label selectors as kubectl writes them."""

from __future__ import annotations

import pytest

from tutti.app.label_query import parse_query
from tutti.exceptions import InputError


@pytest.mark.parametrize(
    ("query", "yes", "no"),
    [
        ("a=b", {"a": "b"}, {"a": "c"}),
        ("a==b", {"a": "b"}, {}),
        ("a = b , c=d", {"a": "b", "c": "d"}, {"a": "b"}),
        ("a!=b", {}, {"a": "b"}),
        ("a=", {"a": ""}, {}),
        ("a", {"a": "x"}, {"b": "x"}),
        ("!a", {"b": "x"}, {"a": "x"}),
        ("a in (b,c),d", {"a": "c", "d": ""}, {"a": "d", "d": ""}),
        ("a notin (b, c)", {}, {"a": "c"}),
        ("n>3", {"n": "4"}, {"n": "3"}),
        ("n<3", {"n": "2"}, {}),
        ("app.kubernetes.io/name=web", {"app.kubernetes.io/name": "web"}, {}),
    ],
)
def test_queries(query: str, yes: dict[str, str], no: dict[str, str]) -> None:
    selector = parse_query(query)
    assert selector.matches(yes)
    assert not selector.matches(no)


@pytest.mark.parametrize("query", ["", "a b", "a=b,", "a in b", "a in (b", "=b", "a=b c", "-a=b"])
def test_invalid_queries(query: str) -> None:
    with pytest.raises(InputError, match="is not a condition on a label"):
        parse_query(query)
