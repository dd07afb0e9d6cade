"""The flow: from a request to a recommendation.

Initialise the picture; pose the problem; filter the pools that can help; let every strategy buy, node by node or by
column generation; let the binder say what becomes of each draft; take the best; prove how near to the optimum it is;
merge the nodes into scale-ups. Each step is a module of its name.

Contract: pure but for the deadline. The plan places as many pods as any draft would, the important ones first, and is
the cheapest of those by the objective. Whatever it promises was placed by the engine.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

import numpy as np

from tutti.cluster.columns import Ints
from tutti.recommend.answer import NewNode, Placement, PoolStatus, Recommendation
from tutti.recommend.draft import Bought, Draft
from tutti.recommend.eligible import filter_eligible
from tutti.recommend.finish import Finisher, Outcome, bought_of
from tutti.recommend.greedy import greedy
from tutti.recommend.merge import merge
from tutti.recommend.money import NANO
from tutti.recommend.offerings import Catalogue
from tutti.recommend.layout import ROOMS
from tutti.recommend.optimal.flat import Floats
from tutti.recommend.optimum import is_plain, optimum, prove
from tutti.recommend.peers.cluster_autoscaler import cluster_autoscaler
from tutti.recommend.peers.karpenter import karpenter
from tutti.recommend.peers.purchase import Purchase
from tutti.recommend.picture import Picture, initialise
from tutti.recommend.problem import Problem, pose, pose_again
from tutti.recommend.reasons import alternatives, why_left
from tutti.recommend.request import Binder, Deadline, Objective, Options, Request, Strategy
from tutti.recommend.score import unit_weights

Tell = Callable[[str], None]
"""Told how far it is, in a few words."""
_GROUPS = 120
"""Cluster Autoscaler's algorithm is asked up to so many node groups: it tries them one by one."""
_MANY = 600
"""Above so many classes only Karpenter's algorithm is asked: the others go through the classes for every node."""
_TIE = 1e-3
"""What the dearest node counts more than a free one when nodes are counted."""
_SLACK = (0.3, 0.6, 1.0)
"""How much of the largest request is left free on every node in drafts for a scheduler that spreads pods."""
_GREEDY = (Strategy.LEAST_COST, Strategy.LEAST_WASTE, Strategy.MOST_PODS)


def recommend(request: Request, deadline: Deadline, *, tell: Tell | None = None) -> Recommendation:
    """What to buy for the pods that wait."""
    picture = initialise(request)
    problem = pose(picture, request.catalogue)
    objective, notes = _objective(request, problem)
    eligible = filter_eligible(picture, problem, request.catalogue, objective=objective)
    flow = _Flow(request, picture, problem.only(eligible.mask), objective, deadline, tell)
    outcome = flow.best()
    bound = flow.bound(outcome)
    return _answer(flow, problem, outcome, bound, pools=eligible.pools, notes=notes)


def _objective(request: Request, problem: Problem) -> tuple[Objective, list[str]]:
    """What to measure by: without prices only nodes can be counted."""
    wanted = request.options.objective
    known = [offering.price is not None for offering in problem.offerings]
    if wanted is Objective.COST and known and not any(known):
        return Objective.NODES, ["no price is known: the plan is the one with the fewest nodes (--prices gives prices)"]
    return wanted, []


class _Flow:
    """The steps between the problem and the best outcome."""

    def __init__(
        self,
        request: Request,
        picture: Picture,
        problem: Problem,
        objective: Objective,
        deadline: Deadline,
        tell: Tell | None,
    ) -> None:
        self.request, self.picture, self.problem, self.objective = request, picture, problem, objective
        self.options: Options = request.options
        self.strategy = self.options.strategy or Strategy.OPTIMAL
        self.deadline, self._tell = deadline, tell or (lambda _: None)
        self.prices = _prices(problem, objective)
        self.proved = 0.0
        """A bound for all of `demand`, when there is one."""
        self.possible = problem.allowed.any(axis=0) | problem.welcome.any(axis=0)
        """The classes that some node could take."""
        self.demand: Ints = problem.demand.copy()
        self._index = {id(offering): place for place, offering in enumerate(problem.offerings)}
        self._units = _units(problem, self.options)

    # Drafts -----------------------------------------------------------------------------------------------------------

    def best(self) -> Outcome:
        """The best outcome of all drafts; gangs that cannot start whole are given up one by one, the last in turn first."""
        drafts = self._greedy_drafts()
        left_out: set[str] = set()
        while True:
            outcome = self._best_of(drafts, left_out)
            if not outcome.short:
                return outcome
            left_out |= {outcome.short[-1]} if not self.deadline.is_over() else set(outcome.short)
            drafts = [self._without(draft, left_out) for draft in drafts]

    def _greedy_drafts(self) -> list[Draft]:
        """What the strategies that go node by node would buy."""
        if self.strategy is not Strategy.OPTIMAL:
            return [self._greedy(self.strategy, self.deadline)]
        drafts: list[Draft] = []
        if len(self.problem.classes) > _MANY:
            return drafts
        started = self.deadline.left
        for place, strategy in enumerate(_GREEDY):
            if place and started - self.deadline.left > 0.08 * self.deadline.seconds:
                break
            self._tell(f"buying node by node, {strategy}")
            drafts.append(self._greedy(strategy, self.deadline.part(0.5 if not place else 0.15)))
        return drafts

    def _greedy(self, strategy: Strategy, deadline: Deadline) -> Draft:
        every = np.ones(len(self.problem.offerings), dtype=bool)
        draft = greedy(self.picture, self.problem, self.options, strategy, eligible=every, deadline=deadline)
        return draft._replace(maker=str(strategy))

    def _peer_drafts(self) -> list[Draft]:
        """What the peers' algorithms would buy."""
        drafts = []
        part = self.deadline.part(0.12 if len(self.problem.classes) <= _MANY else 0.8)
        request = self._eligible_request()
        self._tell("asking what others would buy")
        for name, buy in (
            ("karpenter", lambda d: karpenter(request, d)),
            ("cluster-autoscaler, least-waste", lambda d: cluster_autoscaler(request, "least-waste", deadline=d)),
            ("cluster-autoscaler, price", lambda d: cluster_autoscaler(request, "price", deadline=d)),
        ):
            if part.is_over() or (name != "karpenter" and len(self.problem.offerings) > _GROUPS):
                break
            drafts.append(self._as_draft(name, buy(part.part(0.5 if len(self.problem.classes) <= _MANY else 1.0))))
            if len(self.problem.classes) > _MANY:
                break
        return drafts

    def _eligible_request(self) -> Request:
        from msgspec.structs import replace

        pools = []
        for pool in self.request.catalogue.pools:
            kept = tuple(offering for offering in pool.offerings if id(offering) in self._index)
            if kept:
                pools.append(replace(pool, offerings=kept))
        catalogue = Catalogue(pools=tuple(pools), limits=self.request.catalogue.limits)
        return replace(self.request, catalogue=catalogue)

    def _as_draft(self, maker: str, purchase: Purchase) -> Draft:
        known = self.problem.of_pod
        bought = tuple(
            Bought(self._index[id(offering)], tuple(pod for pod in pods if pod in known))
            for offering, pods in purchase.nodes
        )
        return Draft(maker, bought, purchase.on_existing, purchase.left)

    def _without(self, draft: Draft, gangs: set[str]) -> Draft:
        """A draft without the pods of some gangs; nodes that had no others are not bought."""
        cluster, of = self.picture.cluster, self.picture.gangs

        def stays(pod: str) -> bool:
            return of.key_of(cluster.pod_row(pod)) not in gangs

        bought = (Bought(each.offering, tuple(filter(stays, each.pods))) for each in draft.bought)
        on_existing = tuple((pod, node) for pod, node in draft.on_existing if stays(pod))
        return draft._replace(bought=tuple(each for each in bought if each.pods), on_existing=on_existing)

    # Outcomes ---------------------------------------------------------------------------------------------------------

    def _best_of(self, drafts: Sequence[Draft], left_out: set[str]) -> Outcome:
        problem = self._narrowed(left_out)
        finisher = Finisher(self.picture, problem, binder=self.options.binder, buy=self._mend)
        every = list(drafts)
        self.demand, self.proved = np.where(self.possible, problem.demand, 0), 0.0
        if self.strategy is Strategy.OPTIMAL and self.demand.any():
            every += self._peer_drafts()
            if len(problem.classes) <= _MANY:
                every = [*self._optimal_drafts(problem, every), *every]
        every.sort(key=lambda draft: (len(draft.left), draft.price(problem.offerings), len(draft.bought)))
        best: Outcome | None = None
        follows = self.options.binder is Binder.TUTTI
        tried: set[tuple[int, ...]] = set()
        for place, draft in enumerate(every):
            late = self.deadline.left < (0.1 if follows else 0.35) * self.deadline.seconds
            if best is not None and (late or not self._promises(draft, best)):
                continue
            purchase = tuple(sorted(each.offering for each in draft.bought))
            if not follows and purchase in tried:  # who goes where is not the plan's choice
                continue
            tried.add(purchase)
            self._tell(f"trying the plan {place + 1} of {len(every)}: {draft.maker}")
            outcome = finisher.finish(draft, self.deadline, prune=follows)
            if best is None or self._rank(outcome) < self._rank(best):
                best = outcome
        if best is not None and not follows:
            self._tell("giving back what is not needed")
            best = finisher.spared(best, self.deadline)
        assert best is not None
        return best._replace(left=tuple(pod for pod in self.picture.pending if pod not in best.where))

    def _narrowed(self, left_out: set[str]) -> Problem:
        """The problem without the pods of some gangs."""
        if not left_out:
            return self.problem
        cluster, of = self.picture.cluster, self.picture.gangs
        classes = tuple(
            each._replace(pods=tuple(pod for pod in each.pods if of.key_of(cluster.pod_row(pod)) not in left_out))
            for each in self.problem.classes
        )
        demand = np.array([len(each.pods) for each in classes], dtype=np.int64)
        return self.problem._replace(classes=classes, demand=demand)

    def _optimal_drafts(self, problem: Problem, seeds: Sequence[Draft]) -> list[Draft]:
        self._tell("column generation")
        before: tuple[tuple[str, str], ...] = ()
        if len(problem.room) > ROOMS:  # too many nodes to decide about one by one: what fits there goes there first
            before = seeds[0].on_existing
            gone = {pod for pod, _ in before}
            classes = tuple(
                each._replace(pods=tuple(pod for pod in each.pods if pod not in gone)) for each in problem.classes
            )
            demand = np.array([len(each.pods) for each in classes], dtype=np.int64)
            none = problem.welcome[:0]
            problem = problem._replace(
                classes=classes, demand=demand, nodes=(), node_labels=(), room=problem.room[:0], welcome=none
            )
        demand = np.minimum(self.demand, problem.demand)
        values = self._units if self.objective is Objective.PODS else None
        share = 0.4 if self.options.binder is Binder.KUBE_SCHEDULER else 0.8 if is_plain(self.problem) else 0.55
        found = optimum(
            problem,
            demand,
            self.prices,
            self.deadline.part(share),
            seeds=seeds,
            values=values,
            tell=lambda cost, bound: self._tell(f"cost {cost / NANO:.2f}, bound {bound / NANO:.2f} an hour"),
        )
        self.proved = 0.0 if before else found.bound
        drafts = list(found.drafts)
        if self.options.binder is Binder.KUBE_SCHEDULER:
            drafts += self._loose_drafts(problem, demand)
        return [draft._replace(on_existing=(*before, *draft.on_existing)) for draft in drafts]

    def _loose_drafts(self, problem: Problem, demand: Ints) -> list[Draft]:
        """Drafts that leave room on every node: a scheduler that spreads pods finds no place for large ones otherwise.

        Such a scheduler fills all nodes alike; the last large pod gets in only if every node has room for one. So a
        part of the largest request is left free everywhere, which makes large nodes the better buy.
        """
        drafts = []
        for place, slack in enumerate(_SLACK):
            self._tell(f"column generation with room to err, {slack:.0%} of a large pod")
            free = problem.free.copy()
            for row in range(len(free)):
                mine = problem.allowed[row] & (demand > 0)
                if mine.any():
                    largest = problem.requests[mine].max(axis=0)
                    roomy = free[row] >= 2 * largest  # what holds one large pod alone has nothing to spread
                    free[row] -= np.where(roomy, (slack * largest).astype(np.int64), 0)
            free[:, problem.resources.index("pods")] = problem.free[:, problem.resources.index("pods")]
            part = self.deadline.part(0.3 / (len(_SLACK) - place))
            found = optimum(problem._replace(free=free), demand, self.prices, part)
            drafts += [draft._replace(maker=f"{draft.maker}, with room to err") for draft in found.drafts[:1]]
        return drafts

    def _promises(self, draft: Draft, best: Outcome) -> bool:
        """Whether a draft could come out better than what is there."""
        if len(draft.left) < len(best.left):
            return True
        if self.objective is Objective.NODES:
            mine = (len(draft.bought), draft.price(self.problem.offerings))
            return mine < (len(best.nodes), best.price)
        return draft.price(self.problem.offerings) < best.price

    def _mend(self, problem: Problem, pods: Sequence[str]) -> Draft:
        """Buy for pods that were left, on the picture as it stands."""
        posed = pose_again(self.picture, problem, pods)
        every = np.ones(len(problem.offerings), dtype=bool)
        return greedy(
            self.picture, posed, self.options, Strategy.LEAST_COST, eligible=every, deadline=self.deadline.at_least(1.0)
        )

    def _rank(self, outcome: Outcome) -> tuple[object, ...]:
        """Less is better: pods left by falling priority, then the objective."""
        pods = self.picture.cluster.pods
        left: dict[int, int] = {}
        units = 0.0
        number_of = self.problem.of_pod
        for pod in outcome.left:
            priority = int(pods.priority[pods.row_of[pod]])
            left[priority] = left.get(priority, 0) + 1
            units += float(self._units[number_of[pod]]) if pod in number_of else 0.0
        levels = tuple(
            left.get(level, 0) for level in sorted({each.priority for each in self.problem.classes}, reverse=True)
        )
        if self.objective is Objective.NODES:
            return (*levels, len(outcome.nodes), outcome.price)
        if self.objective is Objective.PODS:
            return (*levels, units, outcome.price, len(outcome.nodes))
        return (*levels, outcome.price, len(outcome.nodes))

    # Bound ------------------------------------------------------------------------------------------------------------

    def bound(self, outcome: Outcome) -> float:
        """What no plan that places the same pods can cost less than, in the objective's prices."""
        if not outcome.nodes or self.strategy is not Strategy.OPTIMAL:
            return 0.0
        placed = np.array([sum(pod in outcome.where for pod in each.pods) for each in self.problem.classes])
        cost = float(sum(self.prices[number] for _, number in outcome.nodes))
        if self.proved and bool((placed == self.demand).all()) and is_plain(self.problem):
            return min(self.proved, cost)
        self._tell("proving the bound")
        return prove(
            self.problem, placed.astype(np.int64), self.prices, self.deadline.at_least(0.3), known=bought_of(outcome)
        )


def _prices(problem: Problem, objective: Objective) -> Floats:
    """What a node of each offering costs by the objective."""
    prices = np.array([offering.price or 0 for offering in problem.offerings], dtype=np.float64)
    if objective is Objective.NODES or not prices.any():
        return NANO * (1 + _TIE * prices / max(float(prices.max(initial=0.0)), 1.0))
    return prices


def _units(problem: Problem, options: Options) -> Floats:
    """What a pod of each class is worth, the largest 1."""
    units = problem.requests @ unit_weights(problem.resources, options.weights).astype(np.float64)
    return units / max(float(units.max(initial=0.0)), 1.0)


def _rounded_up(flow: _Flow, bound: float) -> int:
    """The least cost that a plan can have which costs at least this: a sum of prices, or a number of nodes."""
    if flow.objective is Objective.NODES:
        return math.ceil(bound / NANO / (1 + _TIE) - 1e-6)
    step = math.gcd(*(offering.price or 0 for offering in flow.problem.offerings)) or 1
    return math.ceil(bound * (1 - 1e-6) / step) * step


def _answer(
    flow: _Flow, problem: Problem, outcome: Outcome, bound: float, *, pools: tuple[PoolStatus, ...], notes: list[str]
) -> Recommendation:
    picture, request = flow.picture, flow.request
    new = dict(outcome.bought)
    pods: dict[str, list[str]] = {name: [] for name in new}
    on_existing = [Placement(pod=pod, node=node) for pod, node in sorted(picture.promised.items())]
    for pod in picture.pending:
        node = outcome.where.get(pod)
        if node in pods:
            pods[node].append(pod)
        elif node is not None:
            on_existing.append(Placement(pod=pod, node=node))
    nodes = tuple(
        NewNode(
            name=name, pool=each.pool, zone=each.zone, instance_type=each.instance_type,
            capacity_type=each.capacity_type, price=each.price, pods=tuple(pods[name]),
        )
        for name, each in new.items()
    )  # fmt: skip
    priced = all(each.price is not None for each in nodes)
    cost = sum(each.price or 0 for each in nodes) if priced else None
    measured = len(nodes) if flow.objective is Objective.NODES else cost
    proved: int | None = None
    if measured is not None and flow.strategy is Strategy.OPTIMAL:
        proved = min(_rounded_up(flow, bound), measured)
    gap = None if proved is None or measured is None else (measured - proved) / measured if measured else 0.0
    held = [
        *why_left(picture, problem, outcome),
    ]
    return Recommendation(
        strategy=outcome.maker if flow.strategy is not Strategy.OPTIMAL else "optimal",
        objective=str(flow.objective), binder=str(flow.options.binder), scale_up=merge(nodes), nodes=nodes,
        on_existing=tuple(on_existing), left=tuple(held), pools=pools, alternatives=alternatives(picture),
        pods=len(picture.pending) + len(picture.promised), placed=len(outcome.where) + len(picture.promised),
        cost=cost, bound=proved, gap=gap, minimal=outcome.minimal,
        notes=(*request.catalogue.notes, *request.notes, *notes),
    )  # fmt: skip
