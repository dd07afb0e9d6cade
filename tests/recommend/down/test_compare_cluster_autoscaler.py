"""Cluster Autoscaler's scale-down beside ours: the same cluster, its own rules, round after round."""

import time

import pytest

from tests.support.documents import disruption_budget
from tests.support.scale_down_clusters import UNOWNED, node, random_cluster, read_request, small_cluster
from tutti.app.recommend.make_recommendation import make_recommendation
from tutti.cluster.work.work_budget import WorkBudget
from tutti.recommend.down.compare_cluster_autoscaler import cluster_autoscaler_scale_down
from tutti.recommend.records.request import DownOptions, RecommendOptions

NOW = 1_240 * 1_000_000


def beside(objects, pools, *, seconds=30.0, **down):
    request = read_request(objects, pools, RecommendOptions(down=DownOptions(**{"consolidate": False, **down})))
    answer = make_recommendation(request, WorkBudget.of_seconds(5.0, time.process_time))
    return answer.down, cluster_autoscaler_scale_down(
        request, answer, WorkBudget.of_seconds(seconds, time.process_time)
    )


def names(gone):
    return [each.node for each in gone]


def test_an_empty_node_goes_with_both():
    ours, theirs = beside(*small_cluster(("web-0", "n0", 1500, {})))
    assert names(ours.removals) == names(theirs.gone) == ["n1"]
    (gone,) = theirs.gone
    assert (gone.pool, gone.price, gone.wait, gone.empty) == ("p", 96_000_000, 600, True)
    assert theirs.saving == ours.saving == 96_000_000
    assert theirs.kept == {"n0": "80% of it is requested"}


def test_its_mark_on_a_node_tells_how_long_it_still_waits():
    objects, pools = small_cluster(nodes=("m5.large",))
    taint = {"key": "DeletionCandidateOfClusterAutoscaler", "value": "1000", "effect": "PreferNoSchedule"}
    objects[0]["spec"] = {"taints": [taint]}
    ours, theirs = beside(objects, pools, now=NOW)
    assert [each.wait for each in theirs.gone] == [each.wait for each in ours.removals] == [360]


def test_what_a_budget_does_not_allow_at_once_comes_a_round_later():
    pods = [(f"web-{number}", f"n{number}", 300, {}) for number in range(3)]
    _, theirs = beside(*small_cluster(*pods, nodes=("m5.large",) * 3, more=[disruption_budget("web", 1)]))
    assert sorted((each.wait, each.empty) for each in theirs.gone) == [(600, False), (1200, False)]
    assert len(theirs.kept) == 1


def test_a_pod_without_a_controller_keeps_its_node_with_both():
    ours, theirs = beside(*small_cluster(("web-0", "n0", 300, UNOWNED), nodes=("m5.large",)))
    assert (ours.removals, theirs.gone, theirs.saving) == ((), (), 0)
    assert theirs.kept == {"n0": "pod default/web-0 has no controller that would recreate it"}


@pytest.mark.parametrize(
    ("pool", "kept"),
    [
        ({"minimum": 2}, "its group would fall below its minimum"),
        ({"scaleDown": {"disabled": True}}, "it is in no node group"),
        ({"scaleDown": {"threshold": 0.01}}, "% of it is requested"),
    ],
)
def test_pool_rules_apply(pool, kept):
    pods = [(f"web-{number}", f"n{number}", 100, {}) for number in range(2)]
    _, theirs = beside(*small_cluster(*pods, **pool))
    assert theirs.gone == ()
    assert len(theirs.kept) == 2
    assert all(why.endswith(kept) for why in theirs.kept.values())


def test_without_pools_nothing_goes():
    objects, _ = small_cluster(("web-0", "n0", 300, {}))
    pools = {"region": "us-east-1", "pools": [{"name": "other", "instanceType": "m5.large"}]}
    _, theirs = beside(objects, pools)
    assert (theirs.gone, theirs.saving, set(theirs.kept.values())) == ((), 0, {"it is in no node group"})


def test_nothing_is_said_without_pods_or_without_a_plan_of_ours():
    objects, pools = small_cluster()
    assert beside([each for each in objects if each["kind"] == "Node"], pools)[1] is None
    assert beside([], pools)[1] is None
    request = read_request(objects, pools, RecommendOptions())
    answer = make_recommendation(request, WorkBudget.of_seconds(5.0, time.process_time))
    assert cluster_autoscaler_scale_down(request, answer, WorkBudget.of_seconds(5.0, time.process_time)) is None


def test_nodes_of_no_pool_stay():
    objects, pools = small_cluster(("web-0", "n0", 1500, {}))
    objects.append(node("other", pool="elsewhere", kind="m5.2xlarge"))
    _, theirs = beside(objects, pools)
    assert theirs.kept["other"] == "it is in no node group"


def test_nodes_not_checked_for_lack_of_time_are_counted():
    _, theirs = beside(*small_cluster(nodes=("m5.large",) * 3), seconds=0.0)
    assert (theirs.gone, theirs.late) == ((), 3)
    assert set(theirs.kept.values()) == {"time was up before its turn"}


@pytest.mark.parametrize("seed", range(12))
def test_every_node_has_gone_or_has_its_reason(seed):
    objects, pools = random_cluster(seed)
    ours, theirs = beside(objects, pools)
    if theirs is None:
        return
    every = {each["metadata"]["name"] for each in objects if each["kind"] == "Node"}
    assert every <= {*names(theirs.gone), *theirs.kept}
    assert not {*names(theirs.gone)} & {*theirs.kept}
    assert len(set(names(theirs.gone))) == len(theirs.gone)
    assert {*names(ours.removals), *(each.node for each in ours.staying_nodes)} == every
