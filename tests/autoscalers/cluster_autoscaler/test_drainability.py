"""The drain rules: each alone, their order, budgets, and what is not known."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

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


def pod(
    name: str = "p",
    *,
    kind: str | None = "ReplicaSet",
    namespace: str = "default",
    created: str | None = OLD,
    deleted: str | None = None,
    phase: str = "Running",
    policy: str | None = None,
    grace: int | None = None,
    volumes: list[dict[str, Any]] | None = None,
    **annotations: str,
) -> Pod:
    owners = [{"apiVersion": "apps/v1", "kind": kind, "name": "own", "controller": True}] if kind else []
    raw = {
        "metadata": {
            "name": name, "namespace": namespace, "labels": {"app": "a"}, "creationTimestamp": created,
            "deletionTimestamp": deleted, "ownerReferences": owners,
            "annotations": {{"evict": SAFE_TO_EVICT, "local": SAFE_LOCAL_VOLUMES, "mirror": MIRROR,
                             "daemon": DAEMON_POD}[key]: value for key, value in annotations.items()},
        },
        "spec": {"nodeName": "n", "volumes": volumes, "restartPolicy": policy, "terminationGracePeriodSeconds": grace},
        "status": {"phase": phase},
    }  # fmt: skip
    return msgspec.convert(raw, Pod)


def budget(
    allowed: int | None, *, namespace: str = "default", name: str = "b", app: str | None = "a"
) -> PodDisruptionBudget:
    selector = {"matchLabels": {"app": app}} if app else {}
    status = {} if allowed is None else {"disruptionsAllowed": allowed}
    raw = {"metadata": {"name": name, "namespace": namespace}, "spec": {"selector": selector}, "status": status}
    return msgspec.convert(raw, PodDisruptionBudget)


def rules(*budgets: PodDisruptionBudget, gone: str = "", now: str | None = NOW) -> DrainabilityRules:
    known = None if now is None else micros(now)
    return DrainabilityRules(RemainingBudgets(budgets), now=known, gone=frozenset(filter(None, [gone])))


EMPTY_DIR, HOST_PATH = {"name": "scratch", "emptyDir": {}}, {"name": "data", "hostPath": {"path": "/var"}}
IN_MEMORY = {"name": "shm", "emptyDir": {"medium": "Memory"}}


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        (pod(), DRAIN_OK),
        (pod(kind="StatefulSet"), DRAIN_OK),
        (pod(kind="Job"), DRAIN_OK),
        (pod(kind="ReplicationController"), DRAIN_OK),
        (pod(kind=None), blocks("NotReplicated")),
        (pod(kind="Workflow"), blocks("NotReplicated")),
        (pod(kind="DaemonSet"), STAYS),
        (pod(daemon="true"), STAYS),
        (pod(mirror="x", kind=None), STAYS),
        (pod(kind=None, phase="Failed"), STAYS),
        (pod(kind=None, phase="Succeeded", policy="Never"), STAYS),
        (pod(kind=None, phase="Succeeded", policy="Always"), blocks("NotReplicated")),
        (pod(deleted="2026-08-01T11:58:59Z", kind=None), STAYS),
        (pod(deleted="2026-08-01T11:59:01Z", kind=None), blocks("NotReplicated")),
        (pod(deleted="2026-08-01T11:58:59Z", kind=None, grace=31), blocks("NotReplicated")),
        (pod(deleted="2026-08-01T11:49:29Z", kind=None, grace=600), STAYS),
        (pod(deleted="2026-08-01T11:49:29Z", kind=None, grace=3600), blocks("NotReplicated")),  # no cap here
        (pod(deleted="2026-08-01T11:59:29Z", kind=None, grace=0), STAYS),
        (pod(deleted="2026-08-01T11:59:28Z", kind=None, grace=-1), STAYS),
        (pod(evict="true"), DRAIN_OK),
        (pod(evict="false"), blocks("NotSafeToEvictAnnotation")),
        (pod(evict="on-completion"), WAIT_FOR_COMPLETION),
        (pod(namespace="kube-system"), DRAIN_OK),
        (pod(namespace="kube-system", created=YOUNG), blocks("UnmovableKubeSystemPod")),
        (pod(namespace="kube-system", created="2026-08-01T11:00:00Z"), blocks("UnmovableKubeSystemPod")),
        (pod(namespace="kube-system", created="2026-08-01T10:59:59Z"), DRAIN_OK),
        (pod(namespace="kube-system", created=None), blocks("UnmovableKubeSystemPod")),
        (pod(volumes=[EMPTY_DIR]), blocks("LocalStorageRequested")),
        (pod(volumes=[HOST_PATH]), blocks("LocalStorageRequested")),
        (pod(volumes=[IN_MEMORY, {"name": "other"}]), DRAIN_OK),
        (pod(volumes=[EMPTY_DIR, HOST_PATH], local="scratch,data"), DRAIN_OK),
        (pod(volumes=[EMPTY_DIR, HOST_PATH], local="scratch"), blocks("LocalStorageRequested")),
    ],
)  # fmt: skip
def test_each_rule(given: Pod, expected: DrainabilityStatus) -> None:
    assert rules().drainable(given) == expected


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        # The first that answers wins, from the front of the list of rules to its end.
        (pod(mirror="x", evict="false", volumes=[HOST_PATH]), STAYS),
        (pod(evict="true"), blocks("ControllerNotFound")),
        (pod(evict="on-completion"), blocks("ControllerNotFound")),
        (pod(phase="Failed"), blocks("ControllerNotFound")),
        (pod(kind="DaemonSet"), blocks("ControllerNotFound")),
        (pod(kind="Workflow"), blocks("NotReplicated")),
        (pod(deleted="2026-08-01T10:00:00Z"), STAYS),
    ],
)
def test_a_controller_that_is_gone(given: Pod, expected: DrainabilityStatus) -> None:
    owner = (given.metadata.owner_references or [])[0]
    assert rules(gone=f"default/{owner.kind}/own").drainable(given) == expected


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        (pod(kind="DaemonSet", evict="false", volumes=[HOST_PATH]), STAYS),
        (pod(kind=None, evict="true", namespace="kube-system", created=YOUNG, volumes=[EMPTY_DIR]), DRAIN_OK),
        (pod(kind=None, evict="on-completion", namespace="kube-system", created=YOUNG), WAIT_FOR_COMPLETION),
        (pod(kind=None, namespace="kube-system", created=OLD), blocks("NotReplicated")),
        (pod(namespace="kube-system", evict="false", volumes=[EMPTY_DIR]), DRAIN_OK),
        (pod(namespace="kube-system", created=YOUNG, evict="false"), blocks("UnmovableKubeSystemPod")),
        (pod(evict="false", volumes=[EMPTY_DIR]), blocks("NotSafeToEvictAnnotation")),
    ],
)
def test_the_order_of_the_rules(given: Pod, expected: DrainabilityStatus) -> None:
    assert rules().drainable(given) == expected


def test_budgets_come_last() -> None:
    spent = (budget(0), budget(0, namespace="kube-system"))
    assert rules(*spent).drainable(pod()) == blocks("NotEnoughPdb")
    assert rules(*spent).drainable(pod(volumes=[EMPTY_DIR])) == blocks("LocalStorageRequested")
    assert rules(*spent).drainable(pod(evict="true")) == DRAIN_OK
    # A kube-system pod with a budget is judged by it, however young or old.
    assert rules(*spent).drainable(pod(namespace="kube-system")) == blocks("NotEnoughPdb")
    left = budget(1, namespace="kube-system")
    assert rules(left).drainable(pod(namespace="kube-system", created=YOUNG)) == DRAIN_OK
    assert rules(left).drainable(pod(namespace="kube-system", evict="false")) == blocks("NotSafeToEvictAnnotation")
    assert rules(budget(0, app="b"), budget(0, namespace="other")).drainable(pod()) == DRAIN_OK


def test_a_budget_is_spent_by_every_move_and_asked_for_one() -> None:
    budgets = RemainingBudgets([budget(1), budget(3, name="c")])
    found = DrainabilityRules(budgets)
    assert (budgets.left(pod()), budgets.number(pod())) == (1, 2)
    assert budgets.allow_together([pod()])
    assert not budgets.allow_together([pod("p"), pod("q")])
    assert found.drainable(pod("q")) == DRAIN_OK, "one is left, and that is all that is asked"
    kept = budgets.copy()
    budgets.spend(pod("p"))
    budgets.spend(pod("q"))
    assert (budgets.left(pod()), kept.left(pod())) == (-1, 1)
    assert found.drainable(pod("q")) == blocks("NotEnoughPdb")
    assert not budgets.allow_together([pod()])


def test_which_pods_a_budget_selects() -> None:
    whole = RemainingBudgets([budget(2, app=None)])
    assert whole.left(pod()) == 2, "an empty selector is the whole namespace"
    assert whole.left(pod(namespace="other")) is None
    assert RemainingBudgets().left(pod()) is None
    assert RemainingBudgets([budget(None)]).left(pod()) == 0, "a status that says nothing allows nothing"


def test_without_a_clock_nobody_is_old() -> None:
    timeless = rules(now=None)
    assert timeless.drainable(pod(namespace="kube-system")) == blocks("UnmovableKubeSystemPod")
    assert timeless.drainable(pod(kind=None, deleted=OLD)) == blocks("NotReplicated")
    assert timeless.drainable(pod()) == DRAIN_OK
    assert latest_moment([]) is None
    assert latest_moment([pod(), pod(created=YOUNG), budget(0)]) == micros(YOUNG)


def test_a_grace_period_makes_no_class_of_its_own() -> None:
    assert spec_key(pod(grace=5)) == spec_key(pod(grace=600)) == spec_key(pod())
    assert spec_key(pod(grace=5)) != spec_key(pod(volumes=[HOST_PATH, EMPTY_DIR], namespace="other"))
