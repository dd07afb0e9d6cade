"""The greedy strategies: the fast strategy makes the plan of the literal one, and known answers are right."""

import random
from functools import partial

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from tests.support import builders
from tests.support.builders import HOSTNAME, ZONE, apart, daemon_set, near, offering, spread
from tests.support.literal_greedy import simulate
from tutti.cluster.work.work_budget import WorkBudget
from tutti.kube import objects as k
from tutti.market.offerings import Catalogue, NodePool, PoolLimit
from tutti.recommend.problem.eligible_pools import filter_eligible
from tutti.recommend.problem.problem import build_problem
from tutti.recommend.records.request import RecommendOptions, Request, Strategy
from tutti.recommend.request_cluster import planning_cluster
from tutti.recommend.search.greedy.strategies import greedy_draft

GREEDY = (Strategy.LEAST_COST, Strategy.LEAST_WASTE, Strategy.MOST_PODS)


node = partial(builders.node, zone="a")
pod = partial(builders.pod, memory="1Gi", priority=0)
members = partial(builders.members, memory="1Gi", priority=0)


def catalogue_of(*offerings, limits=(), **pool_limits):
    pool_names = dict.fromkeys(each.pool for each in offerings)
    node_pools = [
        NodePool(
            name=name,
            offerings=tuple(each for each in offerings if each.pool == name),
            limits=(PoolLimit(left=pool_limits[name], reason=f"{name} has no more nodes"),)
            if name in pool_limits
            else (),
        )
        for name in pool_names
    ]
    return Catalogue(pools=tuple(node_pools), limits=tuple(limits))


class Case:
    """A request with its planning cluster and problem."""

    def __init__(self, objects, catalogue, daemon_sets=()):
        self.planning = planning_cluster(
            Request(objects=tuple(objects), catalogue=catalogue, daemon_sets=tuple(daemon_sets))
        )
        self.problem = build_problem(self.planning, catalogue)
        self.eligible = filter_eligible(self.planning, self.problem, catalogue)

    def plan(self, maker=greedy_draft, strategy=Strategy.LEAST_COST):
        before = cluster_state(self.planning)
        draft = maker(self.planning, self.problem, RecommendOptions(), strategy, eligible=self.eligible.mask)
        assert cluster_state(self.planning) == before
        placed = [p for each in draft.nodes for p in each.pods] + [p for p, _ in draft.on_existing]
        assert sorted([*placed, *draft.left]) == sorted(self.planning.pending)
        for gang, least in self.minimums().items():
            mine = set(map(self.planning.cluster.pods.keys.__getitem__, self.planning.gangs.rows(gang)))
            new = len(mine & set(placed))
            assert not new or new + len(mine - set(self.planning.pending)) >= least
        return draft

    def minimums(self):
        gangs = self.planning.gangs
        return {gang: gangs.gang(gang).minimum for gang in gangs.keys()}  # noqa: SIM118

    def compare_with_literal(self, strategy=Strategy.LEAST_COST):
        fast, literal = self.plan(greedy_draft, strategy), self.plan(simulate, strategy)
        assert self.classes_of(fast) == self.classes_of(literal)
        return fast

    def classes_of(self, draft):
        class_of_pod = self.problem.class_of_pod
        bought = [(each.offering, sorted(class_of_pod[p] for p in each.pods)) for each in draft.nodes]
        return (
            bought,
            sorted((class_of_pod[p], n) for p, n in draft.on_existing),
            sorted(class_of_pod[p] for p in draft.left),
        )

    def pools_of(self, draft):
        return [self.problem.offerings[each.offering].pool for each in draft.nodes]


def cluster_state(planning):
    cluster = planning.cluster
    return sorted(cluster.nodes.row_of), {key: cluster.pods.node_names[row] for key, row in cluster.pods.row_of.items()}


# Known answers --------------------------------------------------------------------------------------------------------


def test_scores_are_exact():
    """Half a core counts as half a core: one node of four cores is a better purchase than a two and a four."""
    offerings = [offering("two", 22_315, cpu="2", memory="8Gi"), offering("four", 44_630, cpu="4", memory="16Gi")]
    case = Case([pod("a", "2500m", memory="4Gi"), pod("b", "900m", memory="4Gi")], catalogue_of(*offerings))
    assert case.pools_of(case.compare_with_literal()) == ["four"]


def test_pods_without_requests_are_bought_for():
    case = Case([pod("a", "0m", memory="0Mi")], catalogue_of(offering("only", 100)))
    for strategy in GREEDY:
        assert len(case.compare_with_literal(strategy).nodes) == 1


def test_existing_nodes_are_used_first():
    case = Case([node("there", "2"), pod("a", "1500m"), pod("b", "1500m")], catalogue_of(offering("only", 100)))
    draft = case.compare_with_literal()
    assert (len(draft.nodes), len(draft.on_existing)) == (1, 1)


def test_ties_go_to_the_larger_node_then_to_the_name():
    offerings = [
        offering("z", 100, cpu="4"),
        offering("y", 200, cpu="8", memory="32Gi"),
        offering("x", 200, cpu="8", memory="32Gi"),
    ]
    case = Case([pod(f"p{n}", "1", memory="4Gi") for n in range(8)], catalogue_of(*offerings))
    assert case.pools_of(case.compare_with_literal()) == ["x"]


def test_pods_of_a_higher_priority_get_the_node():
    """One node may be bought: the offering that takes the important pod wins, although the other one is cheaper."""
    offerings = [offering("cheap", 1, cpu="2", memory="8Gi"), offering("dear", 1000, cpu="8", memory="32Gi")]
    limit = PoolLimit(left=1, reason="one node")
    pods = [pod("small-1", "1"), pod("small-2", "1"), pod("big", "6", priority=10)]
    case = Case(pods, catalogue_of(*offerings, limits=[limit]))
    for strategy in GREEDY:
        draft = case.compare_with_literal(strategy)
        assert case.pools_of(draft) == ["dear"]
        assert "default/big" in draft.nodes[0].pods


def test_resource_limits_are_obeyed():
    limit = PoolLimit(what="cpu", left=9_000, reason="nine cores")
    case = Case([pod(f"p{n}", "4", memory="1Gi") for n in range(4)], catalogue_of(offering("only", 10), limits=[limit]))
    draft = case.compare_with_literal()
    assert (len(draft.nodes), len(draft.left)) == (2, 2)


def test_a_zonal_spread_buys_in_all_zones():
    offerings = [offering("a", 10, zone="a"), offering("b", 11, zone="b"), offering("c", 12, zone="c")]
    nodes = [node(f"n-{zone}", "1", zone=zone) for zone in "abc"]
    pods = [pod(f"p{n}", "2", app="web", topology_spread_constraints=[spread("web")]) for n in range(6)]
    case = Case([*nodes, *pods], catalogue_of(*offerings))
    draft = case.compare_with_literal()
    assert sorted(case.pools_of(draft)) == ["a", "b", "c"]
    assert not draft.left


def test_pods_with_affinity_are_placed_after_the_pods_they_match():
    """The pod with affinity is larger and has its turn first: it is placed once the pod that it matches is placed."""
    pods = [pod("follower", "2", app="f", affinity=near("lead")), pod("leader", "1", app="lead")]
    case = Case(pods, catalogue_of(offering("only", 10)))
    draft = case.compare_with_literal()
    assert (len(draft.nodes), draft.left) == (1, ())


def test_gpus_count_for_waste():
    offerings = [offering("plain", 10, cpu="4", memory="8Gi"), offering("gpu", 10, cpu="4", memory="8Gi", gpu=4)]
    case = Case([pod("a", "2", memory="4Gi")], catalogue_of(*offerings))
    assert case.pools_of(case.compare_with_literal(Strategy.LEAST_WASTE)) == ["plain"]


def test_without_prices_the_score_is_per_node():
    offerings = [offering("small", cpu="2", memory="8Gi"), offering("large", cpu="8", memory="32Gi")]
    case = Case([pod(f"p{n}", "1", memory="2Gi") for n in range(8)], catalogue_of(*offerings))
    assert case.pools_of(case.compare_with_literal()) == ["large"]


# Volumes, empty inputs, exhausted budgets -----------------------------------------------------------------------------


def volume_claim(name, mode="ReadWriteOnce"):
    return k.PersistentVolumeClaim(
        metadata=k.ObjectMeta(name=name, namespace="default", uid=name),
        spec=k.ClaimSpec(
            access_modes=[mode],
            storage_class_name="wait",
            resources=k.ResourceRequirements(requests={"storage": "1Gi"}),
        ),
    )


def claim_volumes(claim):
    return [k.Volume(name="v", persistent_volume_claim=k.ClaimVolume(claim_name=claim))]


STORAGE = k.StorageClass(
    metadata=k.ObjectMeta(name="wait"), provisioner="disk.example", volume_binding_mode="WaitForFirstConsumer"
)


def test_the_engine_decides_about_volumes():
    """Only one pod at a time may use the volume: the second pod is counted, tried, and left unplaced."""
    pods = [pod(f"p{n}", "500m", volumes=claim_volumes("one")) for n in range(2)]
    case = Case(
        [STORAGE, volume_claim("one", "ReadWriteOncePod"), *pods, pod("other", "500m")],
        catalogue_of(offering("only", 10)),
    )
    draft = case.compare_with_literal()
    assert (len(draft.nodes), len(draft.left)) == (1, 1)


def test_pods_with_volumes_of_their_own_are_placed():
    pods = [pod(f"p{n}", "2", volumes=claim_volumes(f"d{n}")) for n in range(5)]
    case = Case([STORAGE, *(volume_claim(f"d{n}") for n in range(5)), *pods], catalogue_of(offering("only", 10)))
    draft = case.compare_with_literal()
    assert (len(draft.nodes), len(draft.left)) == (3, 0)


def test_no_offerings_and_no_pending_pods():
    assert Case([pod("a")], Catalogue()).compare_with_literal().left == ("default/a",)
    assert not Case([node("n")], catalogue_of(offering("only", 10))).compare_with_literal().nodes


def test_the_run_ends_when_the_budget_is_exhausted():
    case = Case([node("n", "1"), pod("a", "1"), pod("b", "1")], catalogue_of(offering("only", 10)))
    for maker in (greedy_draft, simulate):
        exhausted_budget = WorkBudget.of_seconds(0.0, lambda: 0.0)
        draft = maker(
            case.planning, case.problem, RecommendOptions(), eligible=case.eligible.mask, budget=exhausted_budget
        )
        assert (len(draft.nodes), len(draft.on_existing), len(draft.left)) == (0, 1, 1)


# Gangs ----------------------------------------------------------------------------------------------------------------


def gang(name, size, minimum, topology=None, maximum=None):
    annotations = {"tutti.dev/min-member": str(minimum)}
    annotations |= {"tutti.dev/topology-required": topology} if topology else {}
    annotations |= {"tutti.dev/max-member": str(maximum)} if maximum else {}
    return members(name, size, cpu="3", annotations=annotations)


def test_gangs_are_bought_for_whole_or_not_at_all():
    """Six nodes may be bought: enough for one gang of four but not for two; the single pod gets a node too."""
    objects = [*gang("first", 4, 4), *gang("second", 4, 4), pod("alone", "3")]
    case = Case(objects, catalogue_of(offering("only", 10), only=6))
    draft = case.compare_with_literal()
    assert len(draft.nodes) == 5
    assert {p.split("/")[1].split("-")[0] for p in draft.left} == {"second"}


def test_nothing_is_bought_above_the_maximum():
    case = Case(gang("g", 5, 2, maximum=3), catalogue_of(offering("only", 10)))
    draft = case.compare_with_literal()
    assert (len(draft.nodes), len(draft.left)) == (3, 2)


def test_no_node_is_bought_for_a_gang_with_too_few_pods():
    case = Case(gang("g", 2, 3), catalogue_of(offering("only", 10)))
    assert not case.compare_with_literal().nodes


def test_a_gang_that_must_share_a_zone_gets_nodes_in_one_zone():
    """Zone a is cheaper but has only two nodes."""
    offerings = [offering("a", 10, zone="a"), offering("b", 20, zone="b")]
    case = Case(gang("g", 3, 3, topology=ZONE), catalogue_of(*offerings, a=2))
    assert case.pools_of(case.compare_with_literal()) == ["b"] * 3


def test_a_gang_uses_another_domain_when_the_first_is_full():
    offerings = [offering("a", 10, zone="a"), offering("b", 20, zone="b")]
    case = Case([*gang("g", 2, 2, topology=ZONE), *gang("h", 2, 2, topology=ZONE)], catalogue_of(*offerings, a=2))
    draft = case.compare_with_literal()
    assert sorted(case.pools_of(draft)) == ["a", "a", "b", "b"]


# Eligible pools -------------------------------------------------------------------------------------------------------


def pool_statuses(case):
    return {each.pool: (each.eligible, each.reason) for each in case.eligible.pools}


def test_reasons_why_pools_are_not_eligible():
    offerings = [
        offering("full", 10),
        offering("tainted", 10, taint="gpu"),
        offering("small", 10, cpu="1", memory="1Gi"),
        offering("unpriced"),
        offering("fine", 10),
    ]
    found = pool_statuses(Case([pod("a", "2")], catalogue_of(*offerings, full=0)))
    assert found["full"] == (False, "full has no more nodes")
    assert found["tainted"] == (False, "no waiting pod tolerates its taint gpu=yes:NoSchedule")
    assert found["small"] == (False, "no waiting pod is small enough for an empty node of it")
    assert found["unpriced"] == (False, "no known price, while other pools have one")
    assert found["fine"] == (True, "")


def test_pools_that_do_not_match_and_pools_below_their_minimum():
    few = NodePool(name="few", offerings=(offering("few", 10, labels={"disk": "ssd"}),), current=1, minimum=3)
    other = NodePool(name="other", offerings=(offering("other", 10, labels={"disk": "hdd"}),))
    case = Case([pod("a", node_selector={"disk": "ssd"})], Catalogue(pools=(few, other)))
    assert pool_statuses(case)["few"] == (True, "it has 1 of at least 3 nodes")
    assert pool_statuses(case)["other"][1].startswith("no waiting pod that is small enough may run there")


# The fast strategy equals the literal one -----------------------------------------------------------------------------

APPS = ("web", "db", "job")


class RandomCase:
    """A small random request, made from a seed."""

    def __init__(self, seed):
        draw = self.draw = random.Random(f"greedy {seed}")
        zones = draw.sample(("a", "b", "c", ""), draw.randrange(1, 4))
        self.offerings = [self.random_offering(f"pool-{n}", draw.choice(zones)) for n in range(draw.randrange(1, 5))]
        nodes = [self.node(f"node-{n}", draw.choice(zones)) for n in range(draw.randrange(0, 4))]
        self.gangs = [self.gang("g"), self.gang("h")] if draw.random() < 0.4 else [None, None]
        pod_settings = [self.random_pod_settings(n) for n in range(draw.randrange(1, 5))]
        pods = [pod(f"pod-{n}", **draw.choice(pod_settings)) for n in range(draw.randrange(1, 13))]
        running = [
            pod(f"run-{n}", **draw.choice(pod_settings), on=draw.choice(nodes).metadata.name)
            for n in range(draw.randrange(0, 4) if nodes else 0)
        ]
        daemons = [self.random_daemon(n) for n in range(draw.choice((0, 0, 1, 2)))]
        limits = {each.pool: draw.randrange(0, 4) for each in self.offerings if draw.random() < 0.3}
        catalogue_limits = [PoolLimit(left=draw.randrange(1, 6), reason="no more")] if draw.random() < 0.3 else []
        self.case = Case(
            [*nodes, *running, *pods], catalogue_of(*self.offerings, limits=catalogue_limits, **limits), daemons
        )

    def random_offering(self, name, zone):
        draw = self.draw
        price = draw.choice((10, 10, 20, 30, None))
        return offering(
            name,
            price,
            cpu=draw.choice((2, 4, 8)),
            memory=f"{draw.choice((4, 8, 16))}Gi",
            zone=zone,
            **self.random_settings(),
        )

    def node(self, name, zone):
        return node(
            name,
            self.draw.choice((1, 2, 4)),
            memory=f"{self.draw.choice((2, 4, 8))}Gi",
            zone=zone,
            **self.random_settings(),
        )

    def random_settings(self):
        draw = self.draw
        return {"taint": "dedicated" if draw.random() < 0.2 else None, "pods": draw.choice((2, 3, 110))}

    def random_daemon(self, number):
        draw = self.draw
        daemon = pod(f"d{number}", f"{draw.choice((100, 500))}m", memory="128Mi", app=draw.choice((*APPS, "log")))
        affinity = apart(draw.choice(APPS)) if draw.random() < 0.1 else None
        other = pod("x", "100m", memory="128Mi", host_port=80).spec.containers
        containers = daemon.spec.containers if draw.random() < 0.9 else other
        return daemon_set(replace(daemon, spec=replace(daemon.spec, containers=containers, affinity=affinity)))

    def gang(self, name):
        draw = self.draw
        annotations = {"pod-group": name, "tutti.dev/min-member": str(draw.randrange(1, 5))}
        annotations |= {"tutti.dev/max-member": "5"} if draw.random() < 0.2 else {}
        return annotations | ({"tutti.dev/topology-required": ZONE} if draw.random() < 0.4 else {})

    def random_pod_settings(self, number):
        draw = self.draw
        app = draw.choice(APPS)
        settings = {
            "cpu": f"{draw.choice((0, 250, 500, 500, 1000, 1000, 3000))}m",
            "memory": f"{draw.choice((256, 1024, 1024, 3072))}Mi",
            "app": app,
            "priority": draw.choice((0, 0, 0, 10)),
            "tolerates": "dedicated" if draw.random() < 0.3 else None,
        }
        matched_app, key = draw.choice((app, app, draw.choice(APPS))), draw.choice((ZONE, ZONE, HOSTNAME))
        if draw.random() < 0.1:
            settings["host_port"] = draw.choice((80, 81))
        if draw.random() < 0.3:
            settings["annotations"] = self.gangs[draw.randrange(2)]
        rule = draw.randrange(7)
        if rule in (0, 1):
            settings["topology_spread_constraints"] = [
                spread(matched_app, key, skew=draw.choice((1, 1, 2)), min_domains=draw.choice((None, None, 2)))
            ]
        if rule in (1, 2):
            settings["affinity"] = apart(matched_app, draw.choice((ZONE, HOSTNAME)))
        elif rule == 3:
            settings["affinity"] = near(matched_app, draw.choice((ZONE, HOSTNAME)))
        elif rule == 4 and draw.random() < 0.3:
            settings["topology_spread_constraints"] = [spread(matched_app, ZONE), spread(app, HOSTNAME, skew=2)]
        return settings


@given(st.integers(0, 10**9), st.sampled_from(GREEDY))
def test_the_fast_strategy_makes_the_plan_of_the_literal_one(seed, strategy):
    RandomCase(seed).case.compare_with_literal(strategy)


@pytest.mark.parametrize("block", range(4))
def test_many_seeds(block):
    for seed in range(block * 40, block * 40 + 40):
        RandomCase(f"many {seed}").case.compare_with_literal(GREEDY[seed % 3])
