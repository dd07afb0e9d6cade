"""Taints and the tolerations that bear them.

Contract: pure; a toleration is read as kube-scheduler 1.37 reads it by default, so the comparison operators Lt and Gt,
which are behind a feature that is off, tolerate nothing.
"""

from __future__ import annotations

from collections.abc import Iterable

from tutti.kube.objects import Taint, Toleration

HARD_EFFECTS = frozenset(("NoSchedule", "NoExecute"))
"""Effects that keep a new pod off a node."""


def tolerates(toleration: Toleration, taint: Taint) -> bool:
    """Whether a toleration bears a taint."""
    if toleration.effect and toleration.effect != taint.effect:
        return False
    if toleration.key and toleration.key != taint.key:
        return False
    if toleration.operator in (None, "", "Equal"):
        return (toleration.value or "") == (taint.value or "")
    return toleration.operator == "Exists"


def first_untolerated(taints: Iterable[Taint], tolerations: Iterable[Toleration]) -> Taint | None:
    """The first taint that keeps a pod with these tolerations off."""
    borne = tuple(tolerations)
    for taint in taints:
        if taint.effect in HARD_EFFECTS and not any(tolerates(toleration, taint) for toleration in borne):
            return taint
    return None


def merged(tolerations: Iterable[Toleration], more: Iterable[Toleration]) -> list[Toleration]:
    """Both lists without those that another one covers."""
    every = [*tolerations, *more]
    kept: list[Toleration] = []
    for place, toleration in enumerate(every):
        if any(_covers(other, toleration) for other in kept):
            continue
        later = every[place + 1 :]
        if any(not _same(other, toleration) and _covers(other, toleration) for other in later):
            continue
        kept.append(toleration)
    return kept


def with_toleration(tolerations: Iterable[Toleration], toleration: Toleration) -> list[Toleration]:
    """The list with the toleration in the place of the one for the same taint, or at its end."""
    every = list(tolerations)
    found = False
    for place, other in enumerate(every):
        if _matches(other, toleration):
            every[place], found = toleration, True
    return every if found else [*every, toleration]


def _matches(one: Toleration, other: Toleration) -> bool:
    return _parts(one)[:4] == _parts(other)[:4]


def _same(one: Toleration, other: Toleration) -> bool:
    return _parts(one) == _parts(other)


def _parts(toleration: Toleration) -> tuple[str, str, str, str, int | None]:
    return (
        toleration.key or "",
        toleration.effect or "",
        toleration.operator or "",
        toleration.value or "",
        toleration.toleration_seconds,
    )


def _covers(wide: Toleration, narrow: Toleration) -> bool:
    """Whether one toleration bears all that another does, and as long."""
    if _same(wide, narrow):
        return True
    if (narrow.key or "") != (wide.key or "") and (wide.key or wide.operator != "Exists"):
        return False
    if wide.effect and narrow.effect != wide.effect:
        return False
    if wide.effect == "NoExecute" and wide.toleration_seconds is not None:
        seconds = narrow.toleration_seconds
        if seconds is None or seconds > wide.toleration_seconds:
            return False
    if wide.operator in (None, "", "Equal"):
        return narrow.operator == "Equal" and (narrow.value or "") == (wide.value or "")
    return wide.operator == "Exists"
