"""What a cluster gives back: on a hundred generated clusters nothing is lost, and small ones by hand."""

import time

import pytest

from tests.support.documents import disruption_budget, pod_group
from tests.support.scale_down_clusters import (
    UNOWNED,
    node,
    pod,
    random_cluster,
    read_request,
    removed_nodes,
    scale_down,
    small_cluster,
    stay_reasons,
)
from tests.support.scale_down_replay import violations
from tutti.app.recommend.make_recommendation import make_recommendation
from tutti.cluster.work.work_budget import WorkBudget
from tutti.recommend.records.request import Binder, DownOptions, RecommendOptions
from tutti.wire.merged_scale_ups import free_removals


@pytest.mark.parametrize("block", range(10))
def test_no_pod_is_lost(block):
    for seed in range(block * 10, block * 10 + 10):
        objects, pools = random_cluster(seed)
        request, answer = scale_down(objects, pools, seconds=0.25)  # whatever was found by then
        assert not violations(objects, request, answer), f"seed {seed}"


@pytest.mark.parametrize("seed", range(100, 106))
def test_plans_bound_by_tutti_are_valid(seed):
    objects, pools = random_cluster(seed)
    request, answer = scale_down(objects, pools, binder=Binder.TUTTI)
    assert not violations(objects, request, answer)


def test_equal_requests_give_equal_plans():
    objects, pools = random_cluster(4)
    assert scale_down(objects, pools, seconds=30)[1] == scale_down(objects, pools, seconds=30)[1]


# By hand --------------------------------------------------------------------------------------------------------------


def plan_of(*args, options=None, **given):
    objects, pools = small_cluster(*args, **given)
    request, answer = scale_down(objects, pools, **(options or {}))
    assert not violations(objects, request, answer)
    return answer.down


SAFE = "cluster-autoscaler.kubernetes.io/safe-to-evict"


def test_an_empty_node_goes_and_the_used_one_stays():
    plan = plan_of(("web-0", "n0", 1500, {}), options={"consolidate": False})
    assert removed_nodes(plan) == ["n1"]
    assert plan.removals[0].why == "empty"
    assert plan.saving == plan.before - plan.after == 96_000_000
    assert stay_reasons(plan) == {"n0": "NotUnderutilized"}
    assert plan.steps[0].removes == ("n1",)


@pytest.mark.parametrize(
    ("changes", "reason", "words"),
    [
        ({"metadata": {"ownerReferences": []}}, "BlockedByPod", "no controller"),
        ({"metadata": {"annotations": {SAFE: "false"}}}, "BlockedByPod", "not safe to evict"),
        ({"metadata": {"annotations": {SAFE: "on-completion"}}}, "BlockedByOnCompletionPod", "finish first"),
        ({"metadata": {"annotations": {"karpenter.sh/do-not-disrupt": "true"}}}, "BlockedByPod", "do-not-disrupt"),
        ({"spec": {"volumes": [{"name": "v", "emptyDir": {}}]}}, "BlockedByPod", "local storage"),
        ({"spec": {"volumes": [{"name": "v", "hostPath": {"path": "/x"}}]}}, "BlockedByPod", "local storage"),
        ({"spec": {"nodeSelector": {"kubernetes.io/hostname": "n0"}}}, "NoPlaceToMovePods", "no other node takes"),
    ],
)
def test_a_pod_keeps_its_node(changes, reason, words):
    plan = plan_of(("web-0", "n0", 300, changes), ("db-0", "n1", 300, UNOWNED))
    assert stay_reasons(plan)["n0"] == reason
    assert words in next(stay.message for stay in plan.staying_nodes if stay.node == "n0")
    assert not plan.removals


def test_a_volume_in_memory_does_not_block():
    volume = {"spec": {"volumes": [{"name": "v", "emptyDir": {"medium": "Memory"}}]}}
    assert removed_nodes(plan_of(("web-0", "n0", 300, volume), ("db-0", "n1", 900, {}))) == ["n0"]


def test_a_budget_makes_steps_of_what_it_allows():
    pods = [(f"web-{number}", "n0", 100, {}) for number in range(3)]
    plan = plan_of(*pods, ("db-0", "n1", 900, UNOWNED), more=[disruption_budget("web", 1)])
    assert removed_nodes(plan) == ["n0"]
    assert [len(step.moves) for step in plan.steps] == [1, 1, 1]
    assert plan.steps[-1].removes == ("n0",)
    assert (
        stay_reasons(plan_of(*pods, ("db-0", "n1", 900, UNOWNED), more=[disruption_budget("web", 0)]))["n0"]
        == "BlockedByPod"
    )


@pytest.mark.parametrize(
    ("graces", "expected"), [((), 30), ((None, 5), 30), ((5,), 5), ((90, 20), 90), ((90, 7200), 600), ((0,), 0)]
)
def test_a_step_waits_for_the_pods_own_grace(graces, expected):
    pods = [
        (f"web-{place}", "n0", 100, {"spec": {"terminationGracePeriodSeconds": grace}})
        for place, grace in enumerate(graces or (None,))
    ]
    plan = plan_of(*pods, ("db-0", "n1", 900, UNOWNED))
    assert [(len(step.moves), step.grace) for step in plan.steps] == [(len(pods), expected)]
    assert plan.grace == expected


def test_two_budgets_are_refused_by_the_eviction_api():
    second = disruption_budget("web", 5)
    second["metadata"]["name"] = "again"
    plan = plan_of(("web-0", "n0", 300, {}), ("db-0", "n1", 900, UNOWNED), more=[disruption_budget("web", 5), second])
    assert "several disruption budgets" in next(stay.message for stay in plan.staying_nodes if stay.node == "n0")


def test_a_gang_moves_whole_or_not_at_all():
    group = {"metadata": {"labels": {"app": "train", "scheduling.x-k8s.io/pod-group": "train"}}}
    pods = [("train-0", "n0", 300, group), ("train-1", "n1", 300, group)]
    kinds = ("m5.large", "m5.large", "m5.xlarge")
    plan = plan_of(*pods, ("db-0", "n2", 900, UNOWNED), nodes=kinds, more=[pod_group("train", 2)])
    assert removed_nodes(plan) == ["n0", "n1"]
    assert sorted(len(step.moves) for step in plan.steps) == [0, 2]
    # With a member to spare they go one at a time.
    loose = plan_of(*pods, ("db-0", "n2", 900, UNOWNED), nodes=kinds, more=[pod_group("train", 1)])
    assert [len(step.moves) for step in loose.steps] == [1, 1]
    # And not at all if the budget never lets two go at once.
    held = plan_of(
        *pods, ("db-0", "n2", 900, UNOWNED), nodes=kinds, more=[pod_group("train", 2), disruption_budget("train", 1)]
    )
    assert not held.removals
    assert "its gang" in held.staying_nodes[0].message


def test_pools_keep_their_minimum():
    plan = plan_of(nodes=("m5.large",) * 4, minimum=3)
    assert len(plan.removals) == 1
    assert set(stay_reasons(plan).values()) == {"NodeGroupMinSizeReached"}


def test_many_for_one_and_the_large_empty_node_is_not_wasted():
    """Seven small nodes with a pod each and a large one: the large one takes them all."""
    pods = [(f"web-{number}", f"n{number}", 500, {}) for number in range(7)]
    plan = plan_of(*pods, nodes=("m5.large",) * 7 + ("m5.xlarge",))
    assert plan.after == 192_000_000
    assert len(plan.removals) == 7
    assert not plan.nodes


def test_a_dear_node_is_replaced_by_a_cheaper_one():
    plan = plan_of(("web-0", "n0", 1000, {}), nodes=("m5.2xlarge",), instanceTypes=["m5.2xlarge", "m5.large"])
    assert removed_nodes(plan) == ["n0"]
    assert [(each.instance_type, each.increment) for each in plan.scale_up] == [("m5.large", 1)]
    assert plan.saving == 384_000_000 - 96_000_000
    assert plan.steps[0].adds == (plan.nodes[0].name,)
    assert plan.nodes[0].pods == ("default/web-0",)
    assert plan.churn == 10_000_000 + 96_000_000 // 12


def test_small_savings_move_no_pod():
    kinds, pool = ("m5.2xlarge",), {"instanceTypes": ["m5.2xlarge", "m5.large"]}
    dear = {"move_cost": 10**10}
    assert not plan_of(("web-0", "n0", 1000, {}), nodes=kinds, options=dear, **pool).removals
    assert not plan_of(("web-0", "n0", 1000, {}), nodes=kinds, options={"least": 0.9}, **pool).removals
    stays = stay_reasons(plan_of(("web-0", "n0", 300, {}), ("db-0", "n1", 900, {}), options=dear))
    assert "NotWorthMoving" in stays.values()


def test_a_pool_says_itself_when_its_nodes_go():
    pods = [("web-0", "n0", 300, {}), ("db-0", "n1", 900, {})]
    assert set(stay_reasons(plan_of(*pods, scaleDown={"disabled": True})).values()) == {"ScaleDownDisabled"}
    assert not plan_of(*pods, scaleDown={"emptyOnly": True}).removals
    plan = plan_of(*pods, scaleDown={"unneeded": "3m", "threshold": 0.3})
    assert plan.removals[0].wait == 180


def test_gpu_nodes_wait_less_and_are_measured_by_gpus():
    objects, pools = small_cluster(nodes=("m5.large", "m5.large"))
    for each in objects:
        if each["kind"] != "Node":
            continue
        for part in ("capacity", "allocatable"):
            each["status"][part] = each["status"][part] | {"nvidia.com/gpu": "1"}
    _, answer = scale_down(objects, pools)
    assert [each.wait for each in answer.down.removals] == [300, 300]


def test_cluster_autoscalers_mark_tells_since_when():
    objects, pools = small_cluster(nodes=("m5.large",))
    taint = {"key": "DeletionCandidateOfClusterAutoscaler", "value": "1000", "effect": "PreferNoSchedule"}
    objects[0]["spec"] = {"taints": [taint]}
    _, answer = scale_down(objects, pools, now=1_240 * 1_000_000)
    assert [each.wait for each in answer.down.removals] == [360]


def test_pending_pods_come_first():
    waiting = pod("new-0", None, 1500)
    objects, pools = small_cluster(("web-0", "n0", 300, {}), more=[waiting])
    _, answer = scale_down(objects, pools)
    assert [each.node for each in answer.on_existing] == ["n1"]
    assert stay_reasons(answer.down)["n1"] == "TakesPendingPods"


def test_an_empty_cluster():
    request = read_request(
        [],
        {"region": "us-east-1", "pools": [{"name": "p", "instanceType": "m5.large"}]},
        RecommendOptions(down=DownOptions()),
    )
    plan = make_recommendation(request, WorkBudget.of_seconds(1, time.process_time)).down
    assert (plan.removals, plan.staying_nodes, plan.saving) == ((), (), 0)


def test_a_dump_without_pods_lets_nothing_go():
    objects, pools = small_cluster(nodes=("m5.large",) * 3)
    _, answer = scale_down([each for each in objects if each["kind"] == "Node"], pools)
    assert set(stay_reasons(answer.down).values()) == {"NoPodsKnown"}
    assert "no pods in the input" in answer.down.notes[0]


def test_nodes_of_no_pool_are_on_the_bill():
    objects, pools = small_cluster(nodes=("m5.large", "m5.large"))
    objects.append(node("other", pool="elsewhere", kind="m5.2xlarge"))
    _, answer = scale_down(objects, pools)
    assert (answer.down.before, answer.down.after) == (2 * 96_000_000 + 384_000_000, 384_000_000)


def test_the_purchase_is_on_the_bill_and_comes_first():
    waiting = pod("new-0", None, 3000)
    objects, pools = small_cluster(
        ("web-0", "n0", 500, {}), nodes=("m5.large",), more=[waiting], instanceTypes=["m5.large", "m5.xlarge"]
    )
    request, answer = scale_down(objects, pools)
    assert not violations(objects, request, answer) or answer.down.purchase
    assert answer.down.purchase == 192_000_000
    assert (answer.down.before, answer.down.after) == (288_000_000, 192_000_000)
    assert answer.down.steps[0].adds == tuple(each.name for each in answer.nodes)
    assert [each.node for each in free_removals(answer)] == []


def test_an_exhausted_budget_gives_a_note():
    objects, pools = random_cluster(12)
    _, answer = scale_down(objects, pools, seconds=1e-6)
    assert any("time was up" in note for note in answer.down.notes)
