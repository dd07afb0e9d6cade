"""The drain rules: each alone, their order, budgets, and what is not known."""

from __future__ import annotations

from typing import Any

import pytest

from tests.support import builders
from tests.support.builders import disruption_budget
from tutti.autoscalers.cluster_autoscaler.drainability import (
    DAEMON_POD,
    MIRROR,
    SAFE_LOCAL_VOLUMES,
    SAFE_TO_EVICT,
    BudgetsLeft,
    EvictionRules,
    Fate,
    Verdict,
    latest_moment,
)
from tutti.cluster.spec_classes import spec_key
from tutti.kube.objects import Pod, PodDisruptionBudget
from tutti.kube.times import micros

NOW = "2026-08-01T12:00:00Z"
OLD, YOUNG = "2026-08-01T02:00:00Z", "2026-08-01T11:30:00Z"
STAYS, MOVES, WAITS = Verdict(Fate.STAYS_WITH_NODE), Verdict(Fate.MOVES), Verdict(Fate.WAITS)


def blocks(reason: str) -> Verdict:
    return Verdict(Fate.BLOCKS, reason)


MARKS = {"evict": SAFE_TO_EVICT, "local": SAFE_LOCAL_VOLUMES, "mirror": MIRROR, "daemon": DAEMON_POD}


def pod_of(name: str = "p", *, kind: str | None = "ReplicaSet", created: str | None = OLD, **how: Any) -> Pod:
    """A pod that runs, of a controller of a kind; `MARKS` lists its annotations."""
    annotations = {key: how.pop(short) for short, key in MARKS.items() if short in how}
    owner = (kind, "own") if kind else None
    how["termination_grace_period_seconds"] = how.pop("grace", None)
    return builders.pod(name, on="n", app="a", owner=owner, created=created, annotations=annotations, **how)


def rules(*budgets: PodDisruptionBudget, gone: str = "", now: str | None = NOW) -> EvictionRules:
    known = None if now is None else micros(now)
    return EvictionRules(BudgetsLeft(budgets), now=known, gone=frozenset(filter(None, [gone])))


EMPTY_DIR, HOST_PATH = {"name": "scratch", "emptyDir": {}}, {"name": "data", "hostPath": {"path": "/var"}}
IN_MEMORY = {"name": "shm", "emptyDir": {"medium": "Memory"}}


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        (pod_of(), MOVES),
        (pod_of(kind="StatefulSet"), MOVES),
        (pod_of(kind="Job"), MOVES),
        (pod_of(kind="ReplicationController"), MOVES),
        (pod_of(kind=None), blocks("NotReplicated")),
        (pod_of(kind="Workflow"), blocks("NotReplicated")),
        (pod_of(kind="DaemonSet"), STAYS),
        (pod_of(daemon="true"), STAYS),
        (pod_of(mirror="x", kind=None), STAYS),
        (pod_of(kind=None, phase="Failed"), STAYS),
        (pod_of(kind=None, phase="Succeeded", restart_policy="Never"), STAYS),
        (pod_of(kind=None, phase="Succeeded", restart_policy="Always"), blocks("NotReplicated")),
        (pod_of(deleted="2026-08-01T11:58:59Z", kind=None), STAYS),
        (pod_of(deleted="2026-08-01T11:59:01Z", kind=None), blocks("NotReplicated")),
        (pod_of(deleted="2026-08-01T11:58:59Z", kind=None, grace=31), blocks("NotReplicated")),
        (pod_of(deleted="2026-08-01T11:49:29Z", kind=None, grace=600), STAYS),
        (pod_of(deleted="2026-08-01T11:49:29Z", kind=None, grace=3600), blocks("NotReplicated")),  # no cap here
        (pod_of(deleted="2026-08-01T11:59:29Z", kind=None, grace=0), STAYS),
        (pod_of(deleted="2026-08-01T11:59:28Z", kind=None, grace=-1), STAYS),
        (pod_of(evict="true"), MOVES),
        (pod_of(evict="false"), blocks("NotSafeToEvictAnnotation")),
        (pod_of(evict="on-completion"), WAITS),
        (pod_of(namespace="kube-system"), MOVES),
        (pod_of(namespace="kube-system", created=YOUNG), blocks("UnmovableKubeSystemPod")),
        (pod_of(namespace="kube-system", created="2026-08-01T11:00:00Z"), blocks("UnmovableKubeSystemPod")),
        (pod_of(namespace="kube-system", created="2026-08-01T10:59:59Z"), MOVES),
        (pod_of(namespace="kube-system", created=None), blocks("UnmovableKubeSystemPod")),
        (pod_of(volumes=[EMPTY_DIR]), blocks("LocalStorageRequested")),
        (pod_of(volumes=[HOST_PATH]), blocks("LocalStorageRequested")),
        (pod_of(volumes=[IN_MEMORY, {"name": "other"}]), MOVES),
        (pod_of(volumes=[EMPTY_DIR, HOST_PATH], local="scratch,data"), MOVES),
        (pod_of(volumes=[EMPTY_DIR, HOST_PATH], local="scratch"), blocks("LocalStorageRequested")),
    ],
)  # fmt: skip
def test_each_rule(given: Pod, expected: Verdict) -> None:
    assert rules().verdict(given) == expected


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        # The first that answers wins, from the front of the list of rules to its end.
        (pod_of(mirror="x", evict="false", volumes=[HOST_PATH]), STAYS),
        (pod_of(evict="true"), blocks("ControllerNotFound")),
        (pod_of(evict="on-completion"), blocks("ControllerNotFound")),
        (pod_of(phase="Failed"), blocks("ControllerNotFound")),
        (pod_of(kind="DaemonSet"), blocks("ControllerNotFound")),
        (pod_of(kind="Workflow"), blocks("NotReplicated")),
        (pod_of(deleted="2026-08-01T10:00:00Z"), STAYS),
    ],
)
def test_a_controller_that_is_gone(given: Pod, expected: Verdict) -> None:
    owner = (given.metadata.owner_references or [])[0]
    assert rules(gone=f"default/{owner.kind}/own").verdict(given) == expected


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        (pod_of(kind="DaemonSet", evict="false", volumes=[HOST_PATH]), STAYS),
        (pod_of(kind=None, evict="true", namespace="kube-system", created=YOUNG, volumes=[EMPTY_DIR]), MOVES),
        (pod_of(kind=None, evict="on-completion", namespace="kube-system", created=YOUNG), WAITS),
        (pod_of(kind=None, namespace="kube-system", created=OLD), blocks("NotReplicated")),
        (pod_of(namespace="kube-system", evict="false", volumes=[EMPTY_DIR]), MOVES),
        (pod_of(namespace="kube-system", created=YOUNG, evict="false"), blocks("UnmovableKubeSystemPod")),
        (pod_of(evict="false", volumes=[EMPTY_DIR]), blocks("NotSafeToEvictAnnotation")),
    ],
)
def test_the_order_of_the_rules(given: Pod, expected: Verdict) -> None:
    assert rules().verdict(given) == expected


def test_budgets_come_last() -> None:
    spent = (disruption_budget("a", 0), disruption_budget("a", 0, namespace="kube-system"))
    assert rules(*spent).verdict(pod_of()) == blocks("NotEnoughPdb")
    assert rules(*spent).verdict(pod_of(volumes=[EMPTY_DIR])) == blocks("LocalStorageRequested")
    assert rules(*spent).verdict(pod_of(evict="true")) == MOVES
    # A kube-system pod with a budget is judged by it, however young or old.
    assert rules(*spent).verdict(pod_of(namespace="kube-system")) == blocks("NotEnoughPdb")
    left = disruption_budget("a", 1, namespace="kube-system")
    assert rules(left).verdict(pod_of(namespace="kube-system", created=YOUNG)) == MOVES
    assert rules(left).verdict(pod_of(namespace="kube-system", evict="false")) == blocks("NotSafeToEvictAnnotation")
    assert rules(disruption_budget("b", 0), disruption_budget("a", 0, namespace="other")).verdict(pod_of()) == MOVES


def test_a_budget_is_spent_by_every_move_and_asked_for_one() -> None:
    budgets = BudgetsLeft([disruption_budget("a", 1), disruption_budget("a", 3, name="c")])
    found = EvictionRules(budgets)
    assert (budgets.left(pod_of()), budgets.has_budget(pod_of())) == (1, True)
    assert budgets.allows_together([pod_of()])
    assert not budgets.allows_together([pod_of("p"), pod_of("q")])
    assert found.verdict(pod_of("q")) == MOVES, "one is left, and that is all that is asked"
    kept = budgets.copy()
    budgets.spend(pod_of("p"))
    budgets.spend(pod_of("q"))
    assert (budgets.left(pod_of()), kept.left(pod_of())) == (-1, 1)
    assert found.verdict(pod_of("q")) == blocks("NotEnoughPdb")
    assert not budgets.allows_together([pod_of()])


def test_which_pods_a_budget_selects() -> None:
    whole = BudgetsLeft([disruption_budget(None, 2)])
    assert whole.left(pod_of()) == 2, "an empty selector is the whole namespace"
    assert whole.left(pod_of(namespace="other")) is None
    assert BudgetsLeft().left(pod_of()) is None
    assert BudgetsLeft([disruption_budget("a", None)]).left(pod_of()) == 0, "a status that says nothing allows nothing"


def test_without_a_clock_nobody_is_old() -> None:
    timeless = rules(now=None)
    assert timeless.verdict(pod_of(namespace="kube-system")) == blocks("UnmovableKubeSystemPod")
    assert timeless.verdict(pod_of(kind=None, deleted=OLD)) == blocks("NotReplicated")
    assert timeless.verdict(pod_of()) == MOVES
    assert latest_moment([]) is None
    assert latest_moment([pod_of(), pod_of(created=YOUNG), disruption_budget("a", 0)]) == micros(YOUNG)


def test_a_grace_period_makes_no_class_of_its_own() -> None:
    assert spec_key(pod_of(grace=5)) == spec_key(pod_of(grace=600)) == spec_key(pod_of())
    assert spec_key(pod_of(grace=5)) != spec_key(pod_of(volumes=[HOST_PATH, EMPTY_DIR], namespace="other"))
