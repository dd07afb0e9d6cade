"""The answer of ``POST /v1/recommendations`` for a `Recommendation`.

Contract: pure; amounts of money become dollars, and `None` stays `None`.
"""

from __future__ import annotations

from tutti.market.money import a_month, dollars
from tutti.recommend.records.down_plan import DownPlan, Removal, ScaleDownStep, StayingNode
from tutti.recommend.records.new_nodes import NewNode, ScaleUp
from tutti.recommend.records.recommendation import Recommendation
from tutti.recommend.records.request import Binder, Objective
from tutti.wire.tutti_api.response import (
    ApiBound,
    ApiCounts,
    ApiDownCounts,
    ApiEviction,
    ApiMoney,
    ApiMove,
    ApiNewNode,
    ApiPending,
    ApiPlace,
    ApiPoolState,
    ApiRemoval,
    ApiScaleDown,
    ApiScaleUp,
    ApiStay,
    ApiStep,
    RecommendationAnswer,
)


def recommendation_answer(answer: Recommendation, currency: str) -> RecommendationAnswer:
    """Return the whole answer."""
    on_existing = tuple(ApiPlace(pod=each.pod, node=each.node) for each in answer.on_existing)
    on_new = tuple(ApiPlace(pod=pod, node=node.name) for node in answer.nodes for pod in node.pods)
    return RecommendationAnswer(
        scale_up=tuple(map(_scale_up, answer.scale_up)),
        nodes=tuple(map(_new_node, answer.nodes)),
        on_existing=on_existing,
        pending=tuple(ApiPending(pod=each.pod, reason=each.reason, gang=each.gang) for each in answer.left),
        pools=tuple(
            ApiPoolState(node_pool=each.pool, eligible=each.eligible, reason=each.reason) for each in answer.pools
        ),
        alternatives=tuple(ApiEviction(pod_or_gang=each.who, evicting=each.evicting) for each in answer.alternatives),
        counts=ApiCounts(
            pending=answer.pods,
            placed=answer.placed,
            on_existing=len(on_existing),
            on_new=len(on_new),
            new_nodes=len(answer.nodes),
        ),
        cost=_money(answer.cost, currency),
        bound=_bound(answer, currency),
        gap=None if answer.gap is None else round(answer.gap, 6),
        minimal=answer.minimal,
        objective=answer.objective,
        strategy=answer.strategy,
        binder=answer.binder,
        holds=on_existing + on_new if answer.binder == Binder.TUTTI else (),
        notes=answer.notes,
        scale_down=None if answer.down is None else _scale_down(answer.down, currency),
    )


def _money(nano: int | None, currency: str) -> ApiMoney | None:
    if nano is None:
        return None
    return ApiMoney(per_hour=dollars(nano), per_month=a_month(nano), currency=currency)


def _bound(answer: Recommendation, currency: str) -> ApiBound | None:
    if answer.bound is None:
        return None
    if answer.objective == Objective.NODES:
        return ApiBound(nodes=answer.bound)
    return ApiBound(per_hour=dollars(answer.bound), per_month=a_month(answer.bound), currency=currency)


def _scale_up(each: ScaleUp) -> ApiScaleUp:
    return ApiScaleUp(
        node_pool=each.pool,
        zone=each.zone,
        instance_type=each.instance_type,
        capacity_type=each.capacity_type,
        increment_by=each.increment,
        node_names=each.node_names,
        price_per_hour=_per_hour(each.price),
        price_per_month=_per_month(each.price),
    )


def _new_node(each: NewNode) -> ApiNewNode:
    return ApiNewNode(
        name=each.name,
        node_pool=each.pool,
        zone=each.zone,
        instance_type=each.instance_type,
        capacity_type=each.capacity_type,
        price_per_hour=_per_hour(each.price),
        price_per_month=_per_month(each.price),
        pods=each.pods,
    )


def _per_hour(nano: int | None) -> float | None:
    return None if nano is None else dollars(nano)


def _per_month(nano: int | None) -> float | None:
    return None if nano is None else a_month(nano)


def _scale_down(plan: DownPlan, currency: str) -> ApiScaleDown:
    return ApiScaleDown(
        remove=tuple(map(_removal, plan.removals)),
        replace_by=tuple(map(_scale_up, plan.scale_up)),
        stay=tuple(map(_stay, plan.staying_nodes)),
        steps=tuple(map(_step, plan.steps)),
        counts=ApiDownCounts(
            remove=len(plan.removals),
            replace_by=len(plan.nodes),
            stay=len(plan.staying_nodes),
            moves=plan.moves,
            steps=len(plan.steps),
        ),
        purchase=_money(plan.purchase, currency),
        before=_money(plan.before, currency),
        after=_money(plan.after, currency),
        saving=_money(plan.saving, currency),
        churn=None if plan.churn is None else dollars(plan.churn),
        payback_hours=None if plan.payback is None else round(plan.payback, 4),
        notes=plan.notes,
    )


def _removal(each: Removal) -> ApiRemoval:
    return ApiRemoval(
        node=each.node,
        node_pool=each.pool,
        zone=each.zone,
        instance_type=each.instance_type,
        capacity_type=each.capacity_type,
        price_per_hour=_per_hour(each.price),
        reason=each.why,
        utilization=round(each.utilization, 6),
        moves=each.moves,
        unneeded_seconds_left=each.wait,
    )


def _stay(each: StayingNode) -> ApiStay:
    return ApiStay(
        node=each.node,
        node_pool=each.pool,
        reason=each.reason,
        message=each.message,
        pod=each.pod or None,
        utilization=None if each.utilization is None else round(each.utilization, 6),
    )


def _step(each: ScaleDownStep) -> ApiStep:
    return ApiStep(
        add=each.adds,
        move=tuple(ApiMove(pod=move.pod, source=move.source, target=move.target) for move in each.moves),
        remove=each.removes,
        grace_seconds=each.grace,
    )
