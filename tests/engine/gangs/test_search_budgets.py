"""Gang searches spend from the work budget of their caller, and end when it is exhausted."""

from __future__ import annotations

from tests.support.builders import members, node, pod
from tutti.cluster.cluster import Cluster
from tutti.cluster.work.meter import GANG_POD
from tutti.cluster.work.work_budget import WorkBudget
from tutti.engine.gangs.cluster_gangs import Gangs
from tutti.engine.gangs.gang_state import Need
from tutti.engine.gangs.placer import GANG_SEARCH, GangPlacer
from tutti.engine.placement.engine import Engine
from tutti.engine.preemption.gang_preemption import GangPreemption


def need_of(cluster: Cluster, gang: str) -> Need:
    gangs = Gangs.of(cluster)
    waiting = [row for row in gangs.rows(gang) if cluster.pods.node[row] < 0]
    return gangs.state(gang, waiting).need()


def tight_gang() -> tuple[GangPlacer, Need]:
    """Return a gang with only one placement, which no order of its pods finds: only the search does."""
    pods = [pod(f"g-{number}", gang="g", cpu=cpu) for number, cpu in enumerate("55333")]
    cluster = Cluster((node("a", cpu="10"), node("b", cpu="9"), *pods))
    return GangPlacer.of(Engine(cluster)), need_of(cluster, "default/g")


def test_a_search_spends_from_the_budget_of_its_caller() -> None:
    placer, need = tight_gang()
    session = WorkBudget(2 * GANG_SEARCH)
    found = placer.place(need, session.limited_to(GANG_SEARCH))
    assert found is not None
    assert len(found) == 5
    assert 5 * GANG_POD < session.meter.count < GANG_SEARCH
    assert session.remaining == 2 * GANG_SEARCH - session.meter.count


def test_a_search_ends_when_its_budget_is_exhausted() -> None:
    placer, need = tight_gang()
    session = WorkBudget(6 * GANG_POD)
    assert placer.place(need, session.limited_to(GANG_SEARCH)) is None
    assert session.is_exhausted()
    assert session.meter.count == 6 * GANG_POD
    cluster = placer.engine.cluster
    assert all(cluster.pods.node_names[row] is None for row in need.waiting)


def test_preemption_ends_when_its_budget_is_exhausted() -> None:
    low = [pod(f"low-{number}", cpu="2", on="a") for number in range(2)]
    gang = [pod(f"g-{number}", gang="g", cpu="2", priority=10) for number in range(2)]
    cluster = Cluster((node("a", cpu="4"), *low, *gang))
    placer, need = GangPlacer.of(Engine(cluster)), need_of(cluster, "default/g")
    for limit, victims in ((0, None), (None, ("default/low-0", "default/low-1"))):
        budget = WorkBudget(limit)
        search = GangPreemption(placer, Gangs.of(cluster), need, priority=10, gang="default/g", budget=budget)
        found = search.run()
        assert (None if found is None else found.victims) == victims
        assert bool(budget.meter.count) == (limit is None)


def test_attached_caches_are_not_copied_with_a_cluster() -> None:
    cluster = Cluster((node("a"), *members("g", 2, cpu="1")))
    gangs = Gangs.of(cluster)
    assert Gangs.of(cluster) is gangs
    assert Gangs.of(cluster.copy()) is not gangs
    engine = Engine(cluster)
    assert GangPlacer.of(engine) is GangPlacer.of(engine)
    assert GangPlacer.of(Engine(cluster)) is not GangPlacer.of(engine)
