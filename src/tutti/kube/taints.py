"""Which taints a toleration tolerates, and how lists of tolerations are merged.

Contract: pure. The rules are those of kube-scheduler 1.37 with default feature gates: the operators Lt and Gt belong to
a feature that is off by default, so they tolerate nothing.
"""

from __future__ import annotations

from collections.abc import Iterable

from tutti.kube.objects import Taint, Toleration

HARD_EFFECTS = frozenset(("NoSchedule", "NoExecute"))
"""Effects that keep a new pod off a node."""


def tolerates(toleration: Toleration, taint: Taint) -> bool:
    """Whether a toleration tolerates a taint."""
    if toleration.effect and toleration.effect != taint.effect:
        return False
    if toleration.key and toleration.key != taint.key:
        return False
    if toleration.operator in (None, "", "Equal"):
        return (toleration.value or "") == (taint.value or "")
    return toleration.operator == "Exists"


def first_untolerated(taints: Iterable[Taint], tolerations: Iterable[Toleration]) -> Taint | None:
    """Return the first taint that keeps a pod with these tolerations off a node; None if no taint does."""
    known = tuple(tolerations)
    for taint in taints:
        if taint.effect in HARD_EFFECTS and not any(tolerates(toleration, taint) for toleration in known):
            return taint
    return None


def merge_tolerations(tolerations: Iterable[Toleration], more: Iterable[Toleration]) -> list[Toleration]:
    """Return the tolerations of both lists, without those that another toleration covers."""
    candidates = [*tolerations, *more]
    kept: list[Toleration] = []
    for index, toleration in enumerate(candidates):
        if any(_covers(other, toleration) for other in kept):
            continue
        later = candidates[index + 1 :]
        if any(not _is_same(other, toleration) and _covers(other, toleration) for other in later):
            continue
        kept.append(toleration)
    return kept


def with_toleration(tolerations: Iterable[Toleration], toleration: Toleration) -> list[Toleration]:
    """Return the list with the toleration in place of those for the same taint, or appended."""
    updated = list(tolerations)
    replaced = False
    for index, other in enumerate(updated):
        if _has_same_taint(other, toleration):
            updated[index], replaced = toleration, True
    return updated if replaced else [*updated, toleration]


def _has_same_taint(first: Toleration, second: Toleration) -> bool:
    return _fields(first)[:4] == _fields(second)[:4]


def _is_same(first: Toleration, second: Toleration) -> bool:
    return _fields(first) == _fields(second)


def _fields(toleration: Toleration) -> tuple[str, str, str, str, int | None]:
    return (
        toleration.key or "",
        toleration.effect or "",
        toleration.operator or "",
        toleration.value or "",
        toleration.toleration_seconds,
    )


def _covers(wide: Toleration, narrow: Toleration) -> bool:
    """Whether `wide` tolerates every taint that `narrow` tolerates, and for at least as long."""
    if _is_same(wide, narrow):
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
