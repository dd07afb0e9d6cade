"""Properties of a cluster: edits, rollback and copies."""

from __future__ import annotations

from contextlib import suppress

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.support.cluster_state import answers, cluster_state, rebuilt
from tests.support.random_clusters import RandomCluster
from tutti.cluster.cluster import Cluster
from tutti.engine.placement.engine import Engine
from tutti.exceptions import ConflictError, NotFoundError

SEQUENCES, EDITS = 20, 500


def apply(cluster: Cluster, drawn: RandomCluster) -> None:
    # An edit that contradicts the cluster is refused, and the cluster stays as it was.
    with suppress(ConflictError, NotFoundError):
        cluster.apply(drawn.edit(cluster))


@pytest.mark.parametrize("seed", range(SEQUENCES))
def test_after_every_edit_the_cluster_answers_as_one_built_from_scratch(seed: int) -> None:
    """20 sequences of 500 edits: 10,000 edits of every kind."""
    # Ports are left out: where two pods are forced onto one port, kube-scheduler's answer depends on history.
    drawn = RandomCluster(seed, ports=False, assumptions=True)
    cluster = Cluster(drawn.objects())
    engine = Engine(cluster)
    for number in range(EDITS):
        apply(cluster, drawn)
        fresh = rebuilt(cluster)
        assert cluster_state(cluster) == cluster_state(fresh), number
        assert answers(cluster, engine, most=2) == answers(fresh, Engine(fresh), most=2), number


@given(seed=st.integers(0, 10**6), before=st.integers(0, 20), inner=st.integers(0, 15), outer=st.integers(0, 15))
def test_rollback_restores_the_state(seed: int, before: int, inner: int, outer: int) -> None:
    drawn = RandomCluster(seed, assumptions=True)
    cluster = Cluster(drawn.objects())
    engine = Engine(cluster)
    for _ in range(before):
        apply(cluster, drawn)
    seen, before_answers = cluster_state(cluster), answers(cluster, engine)
    first = cluster.mark()
    for _ in range(outer):
        apply(cluster, drawn)
    between, inner_answers = cluster_state(cluster), answers(cluster, engine)
    second = cluster.mark()
    for _ in range(inner):
        apply(cluster, drawn)
    answers(cluster, engine)
    cluster.rollback(second)
    assert cluster_state(cluster) == between
    assert answers(cluster, engine) == inner_answers
    cluster.rollback(first)
    assert cluster_state(cluster) == seen
    assert answers(cluster, engine) == before_answers


@given(seed=st.integers(0, 10**6), edits=st.integers(0, 25))
def test_a_committed_mark_can_be_undone_by_an_outer_one(seed: int, edits: int) -> None:
    drawn = RandomCluster(seed, assumptions=True)
    cluster = Cluster(drawn.objects())
    seen = cluster_state(cluster)
    outer = cluster.mark()
    inner = cluster.mark()
    for _ in range(edits):
        apply(cluster, drawn)
    cluster.commit(inner)
    cluster.rollback(outer)
    assert cluster_state(cluster) == seen


@given(seed=st.integers(0, 10**6), edits=st.integers(0, 25))
@settings(max_examples=30)
def test_a_copy_is_independent(seed: int, edits: int) -> None:
    drawn = RandomCluster(seed, assumptions=True)
    cluster = Cluster(drawn.objects())
    answers(cluster, Engine(cluster))
    twin = cluster.copy()
    seen = cluster_state(cluster)
    assert cluster_state(twin) == seen
    assert answers(twin, Engine(twin)) == answers(cluster, Engine(cluster))
    for _ in range(edits):
        apply(twin, drawn)
    assert cluster_state(cluster) == seen
    fresh = rebuilt(twin)
    assert answers(twin, Engine(twin)) == answers(fresh, Engine(fresh))


@given(seed=st.integers(0, 10**6))
def test_rollback_undoes_placements(seed: int) -> None:
    drawn = RandomCluster(seed, assumptions=True)
    cluster = Cluster(drawn.objects())
    engine = Engine(cluster)
    seen, before_answers = cluster_state(cluster), answers(cluster, engine)
    mark = cluster.mark()
    pending = sorted(key for key, row in cluster.pods.row_of.items() if cluster.pods.node_names[row] is None)
    engine.place(pending)
    cluster.rollback(mark)
    assert cluster_state(cluster) == seen
    assert answers(cluster, engine) == before_answers
