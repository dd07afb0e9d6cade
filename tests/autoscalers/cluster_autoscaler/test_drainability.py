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
    DrainabilityOutcome,
    DrainabilityRules,
    DrainabilityStatus,
    RemainingBudgets,
    latest_moment,
)
from tutti.cluster.spec_classes import spec_key
from tutti.kube.objects import Pod, PodDisruptionBudget
from tutti.kube.times import micros

NOW = "2026-08-01T12:00:00Z"
OLD, YOUNG = "2026-08-01T02:00:00Z", "2026-08-01T11:30:00Z"
STAYS, DRAIN_OK, WAIT_FOR_COMPLETION = (
    DrainabilityStatus(DrainabilityOutcome.SKIP_DRAIN),
    DrainabilityStatus(DrainabilityOutcome.DRAIN_OK),
    DrainabilityStatus(DrainabilityOutcome.WAIT_FOR_COMPLETION),
)


def blocks(reason: str) -> DrainabilityStatus:
    return DrainabilityStatus(DrainabilityOutcome.BLOCK_DRAIN, reason)


MARKS = {"evict": SAFE_TO_EVICT, "local": SAFE_LOCAL_VOLUMES, "mirror": MIRROR, "daemon": DAEMON_POD}


def pod_of(name: str = "p", *, kind: str | None = "ReplicaSet", created: str | None = OLD, **how: Any) -> Pod:
    """A pod that runs, of a controller of a kind; `MARKS` lists its annotations."""
    annotations = {key: how.pop(short) for short, key in MARKS.items() if short in how}
    owner = (kind, "own") if kind else None
    how["termination_grace_period_seconds"] = how.pop("grace", None)
    return builders.pod(name, on="n", app="a", owner=owner, created=created, annotations=annotations, **how)


def rules(*budgets: PodDisruptionBudget, missing_controller: str = "", now: str | None = NOW) -> DrainabilityRules:
    known = None if now is None else micros(now)
    missing = frozenset(filter(None, [missing_controller]))
    return DrainabilityRules(RemainingBudgets(budgets), now=known, missing_controllers=missing)


EMPTY_DIR, HOST_PATH = {"name": "scratch", "emptyDir": {}}, {"name": "data", "hostPath": {"path": "/var"}}
IN_MEMORY = {"name": "shm", "emptyDir": {"medium": "Memory"}}


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        (pod_of(), DRAIN_OK),
        (pod_of(kind="StatefulSet"), DRAIN_OK),
        (pod_of(kind="Job"), DRAIN_OK),
        (pod_of(kind="ReplicationController"), DRAIN_OK),
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
        (pod_of(evict="true"), DRAIN_OK),
        (pod_of(evict="false"), blocks("NotSafeToEvictAnnotation")),
        (pod_of(evict="on-completion"), WAIT_FOR_COMPLETION),
        (pod_of(namespace="kube-system"), DRAIN_OK),
        (pod_of(namespace="kube-system", created=YOUNG), blocks("UnmovableKubeSystemPod")),
        (pod_of(namespace="kube-system", created="2026-08-01T11:00:00Z"), blocks("UnmovableKubeSystemPod")),
        (pod_of(namespace="kube-system", created="2026-08-01T10:59:59Z"), DRAIN_OK),
        (pod_of(namespace="kube-system", created=None), blocks("UnmovableKubeSystemPod")),
        (pod_of(volumes=[EMPTY_DIR]), blocks("LocalStorageRequested")),
        (pod_of(volumes=[HOST_PATH]), blocks("LocalStorageRequested")),
        (pod_of(volumes=[IN_MEMORY, {"name": "other"}]), DRAIN_OK),
        (pod_of(volumes=[EMPTY_DIR, HOST_PATH], local="scratch,data"), DRAIN_OK),
        (pod_of(volumes=[EMPTY_DIR, HOST_PATH], local="scratch"), blocks("LocalStorageRequested")),
    ],
)  # fmt: skip
def test_each_rule(given: Pod, expected: DrainabilityStatus) -> None:
    assert rules().drainable(given) == expected


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
def test_a_controller_that_is_gone(given: Pod, expected: DrainabilityStatus) -> None:
    owner = (given.metadata.owner_references or [])[0]
    assert rules(missing_controller=f"default/{owner.kind}/own").drainable(given) == expected


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        (pod_of(kind="DaemonSet", evict="false", volumes=[HOST_PATH]), STAYS),
        (pod_of(kind=None, evict="true", namespace="kube-system", created=YOUNG, volumes=[EMPTY_DIR]), DRAIN_OK),
        (pod_of(kind=None, evict="on-completion", namespace="kube-system", created=YOUNG), WAIT_FOR_COMPLETION),
        (pod_of(kind=None, namespace="kube-system", created=OLD), blocks("NotReplicated")),
        (pod_of(namespace="kube-system", evict="false", volumes=[EMPTY_DIR]), DRAIN_OK),
        (pod_of(namespace="kube-system", created=YOUNG, evict="false"), blocks("UnmovableKubeSystemPod")),
        (pod_of(evict="false", volumes=[EMPTY_DIR]), blocks("NotSafeToEvictAnnotation")),
    ],
)
def test_the_order_of_the_rules(given: Pod, expected: DrainabilityStatus) -> None:
    assert rules().drainable(given) == expected


def test_budgets_come_last() -> None:
    spent = (disruption_budget("a", 0), disruption_budget("a", 0, namespace="kube-system"))
    assert rules(*spent).drainable(pod_of()) == blocks("NotEnoughPdb")
    assert rules(*spent).drainable(pod_of(volumes=[EMPTY_DIR])) == blocks("LocalStorageRequested")
    assert rules(*spent).drainable(pod_of(evict="true")) == DRAIN_OK
    # A kube-system pod with a budget is judged by it, however young or old.
    assert rules(*spent).drainable(pod_of(namespace="kube-system")) == blocks("NotEnoughPdb")
    left = disruption_budget("a", 1, namespace="kube-system")
    assert rules(left).drainable(pod_of(namespace="kube-system", created=YOUNG)) == DRAIN_OK
    assert rules(left).drainable(pod_of(namespace="kube-system", evict="false")) == blocks("NotSafeToEvictAnnotation")
    assert (
        rules(disruption_budget("b", 0), disruption_budget("a", 0, namespace="other")).drainable(pod_of()) == DRAIN_OK
    )


def test_a_budget_is_spent_by_every_move_and_asked_for_one() -> None:
    budgets = RemainingBudgets([disruption_budget("a", 1), disruption_budget("a", 3, name="c")])
    found = DrainabilityRules(budgets)
    assert (budgets.left(pod_of()), budgets.number(pod_of())) == (1, 2)
    assert budgets.allow_together([pod_of()])
    assert not budgets.allow_together([pod_of("p"), pod_of("q")])
    assert found.drainable(pod_of("q")) == DRAIN_OK, "one is left, and that is all that is asked"
    kept = budgets.copy()
    budgets.spend(pod_of("p"))
    budgets.spend(pod_of("q"))
    assert (budgets.left(pod_of()), kept.left(pod_of())) == (-1, 1)
    assert found.drainable(pod_of("q")) == blocks("NotEnoughPdb")
    assert not budgets.allow_together([pod_of()])


def test_which_pods_a_budget_selects() -> None:
    whole = RemainingBudgets([disruption_budget(None, 2)])
    assert whole.left(pod_of()) == 2, "an empty selector is the whole namespace"
    assert whole.left(pod_of(namespace="other")) is None
    assert RemainingBudgets().left(pod_of()) is None
    assert RemainingBudgets([disruption_budget("a", None)]).left(pod_of()) == 0, (
        "a status that says nothing allows nothing"
    )


def test_without_a_clock_nobody_is_old() -> None:
    timeless = rules(now=None)
    assert timeless.drainable(pod_of(namespace="kube-system")) == blocks("UnmovableKubeSystemPod")
    assert timeless.drainable(pod_of(kind=None, deleted=OLD)) == blocks("NotReplicated")
    assert timeless.drainable(pod_of()) == DRAIN_OK
    assert latest_moment([]) is None
    assert latest_moment([pod_of(), pod_of(created=YOUNG), disruption_budget("a", 0)]) == micros(YOUNG)


def test_a_grace_period_makes_no_class_of_its_own() -> None:
    assert spec_key(pod_of(grace=5)) == spec_key(pod_of(grace=600)) == spec_key(pod_of())
    assert spec_key(pod_of(grace=5)) != spec_key(pod_of(volumes=[HOST_PATH, EMPTY_DIR], namespace="other"))
