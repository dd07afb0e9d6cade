"""The greedy strategies: the fast loop makes the plan of the literal one, and the plans are what they should be."""

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
from tutti.recommend.problem.problem import pose
from tutti.recommend.records.request import RecommendOptions, Request, Strategy
from tutti.recommend.request_cluster import planning_cluster
from tutti.recommend.search.greedy.strategies import greedy

GREEDY = (Strategy.LEAST_COST, Strategy.LEAST_WASTE, Strategy.MOST_PODS)


node = partial(builders.node, zone="a")
pod = partial(builders.pod, memory="1Gi", priority=0)
members = partial(builders.members, memory="1Gi", priority=0)


def pools(*offers, limits=(), **pool_limits):
    names = dict.fromkeys(offer.pool for offer in offers)
    made = [
        NodePool(
            name=name,
            offerings=tuple(offer for offer in offers if offer.pool == name),
            limits=(PoolLimit(left=pool_limits[name], reason=f"{name} has no more nodes"),)
            if name in pool_limits
            else (),
        )
        for name in names
    ]
    return Catalogue(pools=tuple(made), limits=tuple(limits))


class Case:
    """A request, posed."""

    def __init__(self, objects, catalogue, daemon_sets=()):
        self.planning = planning_cluster(
            Request(objects=tuple(objects), catalogue=catalogue, daemon_sets=tuple(daemon_sets))
        )
        self.problem = pose(self.planning, catalogue)
        self.eligible = filter_eligible(self.planning, self.problem, catalogue)

    def plan(self, maker=greedy, strategy=Strategy.LEAST_COST):
        before = state(self.planning)
        draft = maker(self.planning, self.problem, RecommendOptions(), strategy, eligible=self.eligible.mask)
        assert state(self.planning) == before
        placed = [p for each in draft.bought for p in each.pods] + [p for p, _ in draft.on_existing]
        assert sorted([*placed, *draft.left]) == sorted(self.planning.pending)
        for gang, least in self.minimums().items():
            mine = set(map(self.planning.cluster.pods.keys.__getitem__, self.planning.gangs.rows(gang)))
            new = len(mine & set(placed))
            assert not new or new + len(mine - set(self.planning.pending)) >= least
        return draft

    def minimums(self):
        gangs = self.planning.gangs
        return {gang: gangs.gang(gang).minimum for gang in gangs.keys()}  # noqa: SIM118

    def both(self, strategy=Strategy.LEAST_COST):
        fast, literal = self.plan(greedy, strategy), self.plan(simulate, strategy)
        assert self.by_class(fast) == self.by_class(literal)
        return fast

    def by_class(self, draft):
        of_pod = self.problem.of_pod
        bought = [(each.offering, sorted(of_pod[p] for p in each.pods)) for each in draft.bought]
        return bought, sorted((of_pod[p], n) for p, n in draft.on_existing), sorted(of_pod[p] for p in draft.left)

    def names(self, draft):
        return [self.problem.offerings[each.offering].pool for each in draft.bought]


def state(planning):
    cluster = planning.cluster
    return sorted(cluster.nodes.row_of), {key: cluster.pods.node_names[row] for key, row in cluster.pods.row_of.items()}


# Known answers --------------------------------------------------------------------------------------------------------


def test_units_are_exact():
    """Half a core is half a core: one node of four cores is a better buy than a two and a four."""
    offers = [offering("two", 22_315, cpu="2", memory="8Gi"), offering("four", 44_630, cpu="4", memory="16Gi")]
    case = Case([pod("a", "2500m", memory="4Gi"), pod("b", "900m", memory="4Gi")], pools(*offers))
    assert case.names(case.both()) == ["four"]


def test_pods_without_requests_are_bought_for():
    case = Case([pod("a", "0m", memory="0Mi")], pools(offering("only", 100)))
    for strategy in GREEDY:
        assert len(case.both(strategy).bought) == 1


def test_existing_nodes_first():
    case = Case([node("there", "2"), pod("a", "1500m"), pod("b", "1500m")], pools(offering("only", 100)))
    draft = case.both()
    assert (len(draft.bought), len(draft.on_existing)) == (1, 1)


def test_ties_go_to_the_larger_node_then_to_the_name():
    offers = [
        offering("z", 100, cpu="4"),
        offering("y", 200, cpu="8", memory="32Gi"),
        offering("x", 200, cpu="8", memory="32Gi"),
    ]
    case = Case([pod(f"p{n}", "1", memory="4Gi") for n in range(8)], pools(*offers))
    assert case.names(case.both()) == ["x"]


def test_a_higher_priority_never_loses_a_node():
    """One node may be bought: the offering that serves the important pod wins, however little it costs."""
    offers = [offering("cheap", 1, cpu="2", memory="8Gi"), offering("dear", 1000, cpu="8", memory="32Gi")]
    limit = PoolLimit(left=1, reason="one node")
    pods = [pod("small-1", "1"), pod("small-2", "1"), pod("big", "6", priority=10)]
    case = Case(pods, pools(*offers, limits=[limit]))
    for strategy in GREEDY:
        draft = case.both(strategy)
        assert case.names(draft) == ["dear"]
        assert "default/big" in draft.bought[0].pods


def test_limits_of_resources():
    limit = PoolLimit(what="cpu", left=9_000, reason="nine cores")
    case = Case([pod(f"p{n}", "4", memory="1Gi") for n in range(4)], pools(offering("only", 10), limits=[limit]))
    draft = case.both()
    assert (len(draft.bought), len(draft.left)) == (2, 2)


def test_a_zonal_spread_buys_in_all_zones():
    offers = [offering("a", 10, zone="a"), offering("b", 11, zone="b"), offering("c", 12, zone="c")]
    nodes = [node(f"n-{zone}", "1", zone=zone) for zone in "abc"]
    pods = [pod(f"p{n}", "2", app="web", topology_spread_constraints=[spread("web")]) for n in range(6)]
    case = Case([*nodes, *pods], pools(*offers))
    draft = case.both()
    assert sorted(case.names(draft)) == ["a", "b", "c"]
    assert not draft.left


def test_followers_come_when_their_leader_has_arrived():
    """The follower is the larger pod and has its turn first: it is placed once the leader is there."""
    pods = [pod("follower", "2", app="f", affinity=near("lead")), pod("leader", "1", app="lead")]
    case = Case(pods, pools(offering("only", 10)))
    draft = case.both()
    assert (len(draft.bought), draft.left) == (1, ())


def test_gpus_count_for_waste():
    offers = [offering("plain", 10, cpu="4", memory="8Gi"), offering("gpu", 10, cpu="4", memory="8Gi", gpu=4)]
    case = Case([pod("a", "2", memory="4Gi")], pools(*offers))
    assert case.names(case.both(Strategy.LEAST_WASTE)) == ["plain"]


def test_without_prices_it_is_per_node():
    offers = [offering("small", cpu="2", memory="8Gi"), offering("large", cpu="8", memory="32Gi")]
    case = Case([pod(f"p{n}", "1", memory="2Gi") for n in range(8)], pools(*offers))
    assert case.names(case.both()) == ["large"]


# What the numbers do not cover ----------------------------------------------------------------------------------------


def disk(name, mode="ReadWriteOnce"):
    return k.PersistentVolumeClaim(
        metadata=k.ObjectMeta(name=name, namespace="default", uid=name),
        spec=k.ClaimSpec(
            access_modes=[mode],
            storage_class_name="wait",
            resources=k.ResourceRequirements(requests={"storage": "1Gi"}),
        ),
    )


def mounts(claim):
    return [k.Volume(name="v", persistent_volume_claim=k.ClaimVolume(claim_name=claim))]


STORAGE = k.StorageClass(
    metadata=k.ObjectMeta(name="wait"), provisioner="disk.example", volume_binding_mode="WaitForFirstConsumer"
)


def test_the_engine_has_the_last_word_on_volumes():
    """Only one pod at a time may have the volume: the second is counted, tried, and left."""
    pods = [pod(f"p{n}", "500m", volumes=mounts("one")) for n in range(2)]
    case = Case([STORAGE, disk("one", "ReadWriteOncePod"), *pods, pod("other", "500m")], pools(offering("only", 10)))
    draft = case.both()
    assert (len(draft.bought), len(draft.left)) == (1, 1)


def test_every_pod_with_its_own_volume():
    pods = [pod(f"p{n}", "2", volumes=mounts(f"d{n}")) for n in range(5)]
    case = Case([STORAGE, *(disk(f"d{n}") for n in range(5)), *pods], pools(offering("only", 10)))
    draft = case.both()
    assert (len(draft.bought), len(draft.left)) == (3, 0)


def test_nothing_to_buy_and_nobody_to_buy_for():
    assert Case([pod("a")], Catalogue()).both().left == ("default/a",)
    assert not Case([node("n")], pools(offering("only", 10))).both().bought


def test_it_ends_when_time_is_up():
    case = Case([node("n", "1"), pod("a", "1"), pod("b", "1")], pools(offering("only", 10)))
    for maker in (greedy, simulate):
        over = WorkBudget.of_seconds(0.0, lambda: 0.0)
        draft = maker(case.planning, case.problem, RecommendOptions(), eligible=case.eligible.mask, budget=over)
        assert (len(draft.bought), len(draft.on_existing), len(draft.left)) == (0, 1, 1)


# Gangs ----------------------------------------------------------------------------------------------------------------


def gang(name, size, minimum, topology=None, maximum=None):
    says = {"tutti.dev/min-member": str(minimum)}
    says |= {"tutti.dev/topology-required": topology} if topology else {}
    says |= {"tutti.dev/max-member": str(maximum)} if maximum else {}
    return members(name, size, cpu="3", annotations=says)


def test_gangs_are_bought_for_whole_or_not_at_all():
    """Six nodes may be bought: enough for one gang of four, not for two; and the lonely pod gets its node."""
    objects = [*gang("first", 4, 4), *gang("second", 4, 4), pod("alone", "3")]
    case = Case(objects, pools(offering("only", 10), only=6))
    draft = case.both()
    assert len(draft.bought) == 5
    assert {p.split("/")[1].split("-")[0] for p in draft.left} == {"second"}


def test_nothing_is_bought_above_the_maximum():
    case = Case(gang("g", 5, 2, maximum=3), pools(offering("only", 10)))
    draft = case.both()
    assert (len(draft.bought), len(draft.left)) == (3, 2)


def test_a_gang_that_lacks_pods_is_not_bought_for():
    case = Case(gang("g", 2, 3), pools(offering("only", 10)))
    assert not case.both().bought


def test_a_gang_that_must_share_a_zone_is_bought_for_in_one():
    """Zone a is cheaper but has two nodes only."""
    offers = [offering("a", 10, zone="a"), offering("b", 20, zone="b")]
    case = Case(gang("g", 3, 3, topology=ZONE), pools(*offers, a=2))
    assert case.names(case.both()) == ["b"] * 3


def test_a_gang_takes_its_other_domain_when_the_first_is_used_up():
    offers = [offering("a", 10, zone="a"), offering("b", 20, zone="b")]
    case = Case([*gang("g", 2, 2, topology=ZONE), *gang("h", 2, 2, topology=ZONE)], pools(*offers, a=2))
    draft = case.both()
    assert sorted(case.names(draft)) == ["a", "a", "b", "b"]


# Eligible pools -------------------------------------------------------------------------------------------------------


def statuses(case):
    return {each.pool: (each.eligible, each.reason) for each in case.eligible.pools}


def test_why_pools_are_out():
    offers = [
        offering("full", 10),
        offering("tainted", 10, taint="gpu"),
        offering("small", 10, cpu="1", memory="1Gi"),
        offering("unpriced"),
        offering("fine", 10),
    ]
    found = statuses(Case([pod("a", "2")], pools(*offers, full=0)))
    assert found["full"] == (False, "full has no more nodes")
    assert found["tainted"] == (False, "no waiting pod tolerates its taint gpu=yes:NoSchedule")
    assert found["small"] == (False, "no waiting pod is small enough for an empty node of it")
    assert found["unpriced"] == (False, "no known price, while other pools have one")
    assert found["fine"] == (True, "")


def test_pools_of_another_kind_and_below_their_minimum():
    few = NodePool(name="few", offerings=(offering("few", 10, labels={"disk": "ssd"}),), current=1, minimum=3)
    other = NodePool(name="other", offerings=(offering("other", 10, labels={"disk": "hdd"}),))
    case = Case([pod("a", node_selector={"disk": "ssd"})], Catalogue(pools=(few, other)))
    assert statuses(case)["few"] == (True, "it has 1 of at least 3 nodes")
    assert statuses(case)["other"][1].startswith("no waiting pod that is small enough may run there")


# The fast loop is the literal one -------------------------------------------------------------------------------------

APPS = ("web", "db", "job")


class Drawn:
    """A small request from a seed."""

    def __init__(self, seed):
        draw = self.draw = random.Random(f"greedy {seed}")
        zones = draw.sample(("a", "b", "c", ""), draw.randrange(1, 4))
        self.offers = [self.offer(f"pool-{n}", draw.choice(zones)) for n in range(draw.randrange(1, 5))]
        nodes = [self.node(f"node-{n}", draw.choice(zones)) for n in range(draw.randrange(0, 4))]
        self.gangs = [self.gang("g"), self.gang("h")] if draw.random() < 0.4 else [None, None]
        kinds = [self.kind(n) for n in range(draw.randrange(1, 5))]
        pods = [pod(f"pod-{n}", **draw.choice(kinds)) for n in range(draw.randrange(1, 13))]
        running = [
            pod(f"run-{n}", **draw.choice(kinds), on=draw.choice(nodes).metadata.name)
            for n in range(draw.randrange(0, 4) if nodes else 0)
        ]
        daemons = [self.daemon(n) for n in range(draw.choice((0, 0, 1, 2)))]
        limits = {offer.pool: draw.randrange(0, 4) for offer in self.offers if draw.random() < 0.3}
        total = [PoolLimit(left=draw.randrange(1, 6), reason="no more")] if draw.random() < 0.3 else []
        self.case = Case([*nodes, *running, *pods], pools(*self.offers, limits=total, **limits), daemons)

    def offer(self, name, zone):
        draw = self.draw
        price = draw.choice((10, 10, 20, 30, None))
        return offering(
            name, price, cpu=draw.choice((2, 4, 8)), memory=f"{draw.choice((4, 8, 16))}Gi", zone=zone, **self.make()
        )

    def node(self, name, zone):
        return node(
            name, self.draw.choice((1, 2, 4)), memory=f"{self.draw.choice((2, 4, 8))}Gi", zone=zone, **self.make()
        )

    def make(self):
        draw = self.draw
        return {"taint": "dedicated" if draw.random() < 0.2 else None, "pods": draw.choice((2, 3, 110))}

    def daemon(self, number):
        draw = self.draw
        made = pod(f"d{number}", f"{draw.choice((100, 500))}m", memory="128Mi", app=draw.choice((*APPS, "log")))
        affinity = apart(draw.choice(APPS)) if draw.random() < 0.1 else None
        other = pod("x", "100m", memory="128Mi", host_port=80).spec.containers
        containers = made.spec.containers if draw.random() < 0.9 else other
        return daemon_set(replace(made, spec=replace(made.spec, containers=containers, affinity=affinity)))

    def gang(self, name):
        draw = self.draw
        says = {"pod-group": name, "tutti.dev/min-member": str(draw.randrange(1, 5))}
        says |= {"tutti.dev/max-member": "5"} if draw.random() < 0.2 else {}
        return says | ({"tutti.dev/topology-required": ZONE} if draw.random() < 0.4 else {})

    def kind(self, number):
        draw = self.draw
        app = draw.choice(APPS)
        made = {
            "cpu": f"{draw.choice((0, 250, 500, 500, 1000, 1000, 3000))}m",
            "memory": f"{draw.choice((256, 1024, 1024, 3072))}Mi",
            "app": app,
            "priority": draw.choice((0, 0, 0, 10)),
            "tolerates": "dedicated" if draw.random() < 0.3 else None,
        }
        whom, key = draw.choice((app, app, draw.choice(APPS))), draw.choice((ZONE, ZONE, HOSTNAME))
        if draw.random() < 0.1:
            made["host_port"] = draw.choice((80, 81))
        if draw.random() < 0.3:
            made["annotations"] = self.gangs[draw.randrange(2)]
        rule = draw.randrange(7)
        if rule in (0, 1):
            made["topology_spread_constraints"] = [
                spread(whom, key, skew=draw.choice((1, 1, 2)), min_domains=draw.choice((None, None, 2)))
            ]
        if rule in (1, 2):
            made["affinity"] = apart(whom, draw.choice((ZONE, HOSTNAME)))
        elif rule == 3:
            made["affinity"] = near(whom, draw.choice((ZONE, HOSTNAME)))
        elif rule == 4 and draw.random() < 0.3:
            made["topology_spread_constraints"] = [spread(whom, ZONE), spread(app, HOSTNAME, skew=2)]
        return made


@given(st.integers(0, 10**9), st.sampled_from(GREEDY))
def test_the_fast_loop_makes_the_plan_of_the_literal_one(seed, strategy):
    Drawn(seed).case.both(strategy)


@pytest.mark.parametrize("block", range(4))
def test_many_seeds(block):
    for seed in range(block * 40, block * 40 + 40):
        Drawn(f"many {seed}").case.both(GREEDY[seed % 3])
