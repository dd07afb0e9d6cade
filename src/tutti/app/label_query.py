"""Label selectors as kubectl's `-l` writes them: ``app=web,tier!=cache,env in (a,b),!legacy``.

Contract: pure. The grammar is that of Kubernetes' labels.Parse; all conditions must hold. An invalid condition raises
`InputError`, which quotes that condition.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from tutti.exceptions import InputError
from tutti.kube.selectors import Requirement, Selector

_NAME = r"[A-Za-z0-9](?:[A-Za-z0-9._/-]*[A-Za-z0-9])?"
_VALUE = r"[A-Za-z0-9._-]*"
_SET = re.compile(rf"({_NAME})\s+(in|notin)\s*\(([^()]*)\)")
_PAIR = re.compile(rf"({_NAME})\s*(==|!=|=|>|<)\s*({_VALUE})")
_EXISTS = re.compile(rf"(!?)\s*({_NAME})")
_COMMA = re.compile(r",(?![^(]*\))")
"""A comma that is not between parentheses."""
_OPERATORS = {"=": "In", "==": "In", "!=": "NotIn", ">": "Gt", "<": "Lt"}


def parse_query(text: str) -> Selector:
    """Return the selector for a query."""
    return Selector(tuple(_requirements(text)))


def _requirements(text: str) -> Iterator[Requirement]:
    for part in _COMMA.split(text):
        condition = part.strip()
        if found := _SET.fullmatch(condition):
            values = frozenset(value.strip() for value in found[3].split(","))
            yield Requirement(found[1], "In" if found[2] == "in" else "NotIn", values)
        elif found := _PAIR.fullmatch(condition):
            yield Requirement(found[1], _OPERATORS[found[2]], frozenset((found[3],)))
        elif found := _EXISTS.fullmatch(condition):
            yield Requirement(found[2], "DoesNotExist" if found[1] else "Exists")
        else:
            raise InputError(f'"{condition}" is not a condition on a label (want for example app=web)', obj="-l")
