"""Karpenter's disruption budgets: how many nodes of a pool a plan takes away."""

import pytest

from tests.support.documents import karpenter_pool
from tests.support.scale_down_clusters import (
    UNOWNED,
    read_request,
    removed_nodes,
    scale_down,
    small_cluster,
    stay_reasons,
)
from tests.support.scale_down_replay import violations
from tutti.exceptions import InputError
from tutti.kube.times import micros
from tutti.recommend.records.request import RecommendOptions

MONDAY, SUNDAY = micros("2026-11-16T12:00:00Z"), micros("2026-11-15T12:00:00Z")
OFFICE = {"schedule": "0 9 * * mon-fri", "duration": "8h"}
EMPTY = object()


def node_pool(disruption):
    wanted = {
        "node.kubernetes.io/instance-type": ["m5.large", "m5.xlarge"],
        "karpenter.sh/capacity-type": ["on-demand"],
        "topology.kubernetes.io/zone": ["us-east-1a"],
    }
    return karpenter_pool("p", wanted, **({} if disruption is None else {"disruption": disruption}))


def karpenter_cluster(*pods, count=12, kind="m5.large", **changes):
    """Nodes n0, n1, ... of Karpenter's pool p, some of them changed."""
    objects, _ = small_cluster(*pods, nodes=(kind,) * count)
    for each in objects:
        if each["kind"] == "Node":
            each["metadata"]["labels"]["karpenter.sh/nodepool"] = "p"
            for part, change in changes.get(each["metadata"]["name"], {}).items():
                each[part] = {**each.get(part, {}), **change}
    return objects


def plan_of(*pods, budgets=EMPTY, count=12, kind="m5.large", changes=None, **options):
    disruption = {"consolidationPolicy": "WhenEmptyOrUnderutilized", "consolidateAfter": "30s"}
    if budgets is not EMPTY:
        disruption["budgets"] = budgets
    objects = karpenter_cluster(*pods, count=count, kind=kind, **(changes or {}))
    request, answer = scale_down(objects, node_pool(disruption), **options)
    assert not violations(objects, request, answer)
    return answer.down


def message(plan):
    (text,) = {stay.message for stay in plan.staying_nodes if stay.reason == "DisruptionBudgetReached"}
    return text


@pytest.mark.parametrize(
    ("budgets", "number", "expected"),
    [
        (EMPTY, 2, "pool p lets 2 of its 12 nodes go at a time, by its disruption budget of 10%"),  # 1.2, rounded up
        ([{}], 2, "pool p lets 2 of its 12 nodes go at a time, by its disruption budget of 10%"),
        ([{"nodes": "25%"}], 3, "pool p lets 3 of its 12 nodes go at a time, by its disruption budget of 25%"),
        ([{"nodes": "5"}], 5, "pool p lets 5 of its 12 nodes go at a time, by its disruption budget of 5 nodes"),
        ([{"nodes": 1}], 1, "pool p lets 1 of its 12 nodes go at a time, by its disruption budget of 1 node"),
        ([{"nodes": "5"}, {"nodes": "3"}], 3, "by its disruption budget of 3 nodes"),  # the tightest counts
        ([{"nodes": "0"}], 0, "pool p lets no node go, by its disruption budget of 0 nodes"),
        ([{"nodes": "0%"}], 0, "pool p lets no node go, by its disruption budget of 0%"),
    ],
)
def test_a_budget_limits_removals(budgets, number, expected):
    plan = plan_of(("db-0", "n0", 900, UNOWNED), budgets=budgets)
    assert len(plan.removals) == number
    assert stay_reasons(plan) == {stay.node: "DisruptionBudgetReached" for stay in plan.staying_nodes} | {
        "n0": "BlockedByPod"
    }
    assert expected in message(plan)


def test_without_budgets_all_go():
    for budgets in ([], [{"nodes": "100%"}], [{"nodes": "0", "reasons": ["Drifted"]}], [{"nodes": "0", "reasons": []}]):
        assert len(removed_nodes(plan_of(("db-0", "n0", 900, UNOWNED), budgets=budgets))) == 11


def test_a_pool_that_says_nothing_has_karpenters_tenth():
    request, answer = scale_down(karpenter_cluster(("db-0", "n0", 900, UNOWNED)), node_pool(None))
    assert len(answer.down.removals) == 2
    assert request.catalogue.pools[0].down_rules.budgets[0].nodes == "10%"


def test_the_emptiest_and_dearest_go_first_and_reasons_are_told_apart():
    pods = [("db-0", "n0", 900, UNOWNED), *((f"web-{place}", f"n{place}", 200, {}) for place in (1, 2, 3))]
    used = [{"nodes": "0", "reasons": ["Underutilized"]}]
    plan = plan_of(*pods, budgets=used, count=6)
    assert removed_nodes(plan) == ["n4", "n5"]
    assert [stay_reasons(plan)[name] for name in ("n1", "n2", "n3")] == ["DisruptionBudgetReached"] * 3
    assert message(plan) == "pool p lets no node go, by its disruption budget of 0 nodes for Underutilized"
    empty = [{"nodes": "0", "reasons": ["Empty"]}]
    assert removed_nodes(plan_of(*pods, budgets=empty, count=6)) == ["n1", "n2", "n3"]
    # What has gone because it was empty counts against what may go for being little used.
    both = [{"nodes": "2", "reasons": ["Underutilized"]}, {"nodes": "100%"}]
    assert removed_nodes(plan_of(*pods, budgets=both, count=6)) == ["n4", "n5"]


def test_disrupted_nodes_count_against_the_budget():
    changes = {
        "n1": {"status": {"conditions": [{"type": "Ready", "status": "Unknown"}]}},
        "n2": {"spec": {"taints": [{"key": "karpenter.sh/disrupted", "effect": "NoSchedule"}]}},
    }
    plan = plan_of(("db-0", "n0", 900, UNOWNED), budgets=[{"nodes": "3"}], changes=changes)
    assert len(removed_nodes(plan)) == 1
    assert message(plan).endswith("of 3 nodes, and 2 are not ready or going already")


@pytest.mark.parametrize(
    ("labels", "number"), [((), 2), (("registered",), 1), (("registered", "initialized"), 2)]
)  # fmt: skip
def test_a_percentage_is_of_the_nodes_that_have_come_up(labels, number):
    """Ten percent of eleven nodes are two, of ten one."""
    objects = karpenter_cluster(("db-0", "n0", 900, UNOWNED), count=11)
    objects[1]["metadata"]["labels"] |= {f"karpenter.sh/{label}": "true" for label in labels}
    assert len(scale_down(objects, node_pool({"budgets": [{"nodes": "10%"}]}))[1].down.removals) == number


def test_consolidation_obeys_the_budget():
    """Six pods that cannot share a node, on nodes of twice the size that they need: each pays to be replaced."""
    apart = {"labelSelector": {"matchLabels": {"app": "web"}}, "topologyKey": "kubernetes.io/hostname"}
    spec = {"affinity": {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [apart]}}}
    pods = [(f"web-{place}", f"n{place}", 1500, {"spec": spec}) for place in range(6)]
    given = {"count": 6, "kind": "m5.xlarge", "seconds": 4}
    free = plan_of(*pods, budgets=[], **given)
    assert (len(free.removals), len(free.nodes)) == (6, 6)
    plan = plan_of(*pods, budgets=[{"nodes": "2"}], **given)
    assert (len(plan.removals), len(plan.nodes)) == (2, 2)
    assert len(plan.staying_nodes) == 4
    assert all("lets 2 of its 6 nodes go at a time" in stay.message for stay in plan.staying_nodes)


def test_a_schedule_needs_a_clock():
    keep, budgets = ("db-0", "n0", 900, UNOWNED), [{"nodes": "0", **OFFICE}]
    assert not removed_nodes(plan_of(keep, budgets=budgets, now=MONDAY))
    assert len(removed_nodes(plan_of(keep, budgets=budgets, now=SUNDAY))) == 11
    without = plan_of(keep, budgets=budgets)
    assert not removed_nodes(without)
    assert without.notes == (
        "disruption budgets of pool p have a schedule, but the current time is unknown: they count as in force",
    )
    assert message(without).endswith("of 0 nodes with the schedule 0 9 * * mon-fri for 8h")
    assert plan_of(keep, budgets=budgets, now=MONDAY).notes == ()
    expected = (
        "pool p lets no node go, by its disruption budget of 0 nodes, in force now by its schedule 0 9 * * mon-fri"
    )
    assert message(plan_of(keep, budgets=budgets, now=MONDAY)) == f"{expected} for 8h"
    longer = [{"nodes": "0", "schedule": "0 9 * * *", "duration": "3h30m"}]
    assert message(plan_of(keep, budgets=longer, now=MONDAY)).endswith("by its schedule 0 9 * * * for 3h30m")


def test_a_schedule_that_never_comes_is_always_in_force():
    """Karpenter looks for its next time, finds none, and takes the zero time for one that has passed."""
    keep, never = ("db-0", "n0", 900, UNOWNED), {"schedule": "0 0 31 2 *", "duration": "1h"}
    plan = plan_of(keep, budgets=[{"nodes": "0", **never}], now=MONDAY)
    assert not removed_nodes(plan)
    assert message(plan).endswith("of 0 nodes, always in force as its schedule 0 0 31 2 * never comes")
    seldom = {"schedule": "0 0 29 2 *", "duration": "1h"}
    assert len(removed_nodes(plan_of(keep, budgets=[{"nodes": "0", **seldom}], now=MONDAY))) == 11


@pytest.mark.parametrize("policy", ["WhenEmpty", "WhenEmptyOrUnderutilized", "WhenUnderutilized", None])
def test_policies_that_karpenter_has(policy):
    request = read_request(karpenter_cluster(), node_pool({"consolidationPolicy": policy}), RecommendOptions())
    assert request.catalogue.pools[0].down_rules.empty_only is (policy == "WhenEmpty")


@pytest.mark.parametrize("policy", ["Sometimes", "whenEmpty", ""])
@pytest.mark.parametrize("after", ["30s", "Never"])
def test_a_policy_that_karpenter_does_not_have_is_refused(policy, after):
    with pytest.raises(InputError) as caught:
        read_request(
            karpenter_cluster(),
            node_pool({"consolidationPolicy": policy, "consolidateAfter": after}),
            RecommendOptions(),
        )
    want = "want WhenEmpty, WhenEmptyOrUnderutilized, WhenUnderutilized"
    expected = f'spec.disruption.consolidationPolicy: there is no policy "{policy}" ({want})'
    assert str(caught.value) == f"pools.json: nodepool p: {expected}"


@pytest.mark.parametrize(
    ("budget", "line"),
    [
        ({"nodes": "some"}, 'nodes: "some" is neither a number of nodes nor a percentage of them'),
        ({"nodes": "101%"}, 'nodes: "101%" is neither'),
        ({"nodes": "-1"}, 'nodes: "-1" is neither'),
        ({"reasons": ["Bored"]}, 'reasons: there is no reason "Bored" (want Underutilized, Empty, Drifted)'),
        ({"schedule": "@daily"}, "duration: schedule and duration go together"),
        ({"duration": "8h"}, "schedule: schedule and duration go together"),
        ({"schedule": "daily", "duration": "8h"}, 'schedule: "daily" is not a schedule'),
        ({"schedule": "@daily", "duration": "long"}, 'duration: "long" is not a duration'),
    ],
)
def test_invalid_budgets_are_refused(budget, line):
    with pytest.raises(InputError) as caught:
        read_request(karpenter_cluster(), node_pool({"budgets": [budget]}), RecommendOptions())
    assert str(caught.value).startswith(f"pools.json: nodepool p: spec.disruption.budgets[0].{line}")
