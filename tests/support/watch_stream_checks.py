"""Checks of a cluster that follows a watch stream: it must end in the expected state, whatever the watch repeats."""

from __future__ import annotations

from collections.abc import Iterable

from tests.support.cluster_state import cluster_state
from tests.support.watch_streams import WatchStream
from tutti.cluster.cluster import Cluster
from tutti.cluster.edits import Edit
from tutti.engine.explain.node_verdicts import node_verdicts
from tutti.engine.placement.engine import Engine

LENGTH = 220
"""The least number of edits of a stream, without noise."""


def followed(edits: Iterable[Edit]) -> Cluster:
    """Return a cluster after edits."""
    cluster = Cluster()
    for edit in edits:
        cluster.apply(edit)
    return cluster


def state(cluster: Cluster) -> dict[str, object]:
    """Return what a cluster knows in the form of `WatchStream.expected_state`."""
    pods, nodes = cluster.pods, cluster.nodes
    found: dict[str, object] = {
        key: (pods.objects[row], pods.node_names[row], int(pods.start[row]), cluster.holds.get(key))
        for key, row in pods.row_of.items()
    }
    found["finished"] = sorted(cluster.pod_updates.finished)
    objects = {(kind, key): obj for kind, by_key in cluster.objects.items() for key, obj in by_key.items()}
    found["others"] = objects | {("Node", name): nodes.objects[row] for name, row in nodes.row_of.items()}
    return found


def rebuilt(cluster: Cluster) -> Cluster:
    """Build the same state in an empty cluster."""
    return followed(cluster.edits())


def assert_consistent(cluster: Cluster) -> None:
    """Compare all sums and answers with those of a cluster that is built from scratch."""
    fresh = rebuilt(cluster)
    assert cluster_state(cluster) == cluster_state(fresh)
    engine, other = Engine(cluster), Engine(fresh)
    for key in sorted(cluster.pods.row_of):
        if cluster.pods.node_names[cluster.pods.row_of[key]] is None:
            assert node_verdicts(engine, key) == node_verdicts(other, key)


def check_streams(seeds: Iterable[int]) -> None:
    """Check many streams."""
    for seed in seeds:
        check_stream(seed)


def check_stream(seed: int) -> None:
    """Follow a stream as it happened, with noise, and in another order; all must end in the expected state."""
    stream = WatchStream(seed, LENGTH)
    clean = followed(stream.edits)
    assert state(clean) == stream.expected_state()
    assert_consistent(clean)
    noisy = followed(stream.noisy(seed))
    assert state(noisy) == stream.expected_state()
    assert noisy.events == clean.events, "repeated and stale updates are no events"
    assert noisy.groups.version == clean.groups.version
    assert_consistent(noisy)
    shuffled = followed(WatchStream.shuffled(stream.noisy(seed + 1), seed))
    assert state(shuffled) == stream.expected_state()
    assert_consistent(shuffled)
