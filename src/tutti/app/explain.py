"""The use case `explain`: why a pod goes where it goes, or why a gang waits and what would cure it.

Contract: pure; the cluster is afterwards as it was. Nothing is scheduled: other pending pods are where they are. Which
pod or gang a user means is decided in `explain_target`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import msgspec

from tutti.app.explain_target import ExplainTarget, TargetKind, find_target
from tutti.app.loaded_cluster import LoadedCluster
from tutti.app.missing_kinds import missing_kinds
from tutti.app.result import Result
from tutti.cluster.cluster import Cluster
from tutti.engine.explain.gang_explanation import GangExplanation, explain_gang
from tutti.engine.explain.gang_status import GangStatus, gang_statuses
from tutti.engine.explain.pod_explanation import PodExplanation, explain_pod
from tutti.engine.gangs.gang_state import Gangs
from tutti.engine.placement.engine import Engine
from tutti.engine.placement.profile import Profile
from tutti.exceptions import NotFoundError
from tutti.present.gang_explanation_text import gang_data, gang_list_text, gang_text
from tutti.present.pod_explanation_text import pod_data, pod_text


class PodExplanationResult(Result, frozen=True, kw_only=True):
    """What every node answers to one pod."""

    explanation: PodExplanation
    cluster: Cluster

    def text(self, *, wide: bool = False) -> str:
        """The outcome, and tables of the nodes that could take the pod and of those that could not."""
        return pod_text(self.explanation, self.cluster, wide=wide)

    def data(self) -> dict[str, Any]:
        """The explanation as plain data."""
        return pod_data(self.explanation)


class GangExplanationResult(Result, frozen=True, kw_only=True):
    """What becomes of one gang, and what would cure it."""

    explanation: GangExplanation

    def text(self, *, wide: bool = False) -> str:
        """The gang's needs, its outcome, and its cures."""
        return gang_text(self.explanation, wide=wide)

    def data(self) -> dict[str, Any]:
        """The explanation as plain data; cures have the objects that they change."""
        return gang_data(self.explanation)


class GangListResult(Result, frozen=True, kw_only=True):
    """The state of every gang."""

    gangs: tuple[GangStatus, ...]

    def text(self, *, wide: bool = False) -> str:
        """A line for each gang."""
        return gang_list_text(self.gangs)

    def data(self) -> Any:
        """A dict for each gang."""
        return msgspec.to_builtins(self.gangs)


ExplainResult = PodExplanationResult | GangExplanationResult | GangListResult


def explain(
    loaded: LoadedCluster,
    what: str,
    *,
    profile: Profile | None = None,
    namespace: str | None = None,
    tell: Callable[[str], None] = lambda _: None,
) -> ExplainResult:
    """Explain ``pod/NAME`` or ``gang/NAME``; ``gang`` alone lists all gangs. `tell` hears how far it is."""
    target = find_target(loaded.snapshot, loaded.cluster, what, namespace=namespace)
    return explain_target(loaded, target, profile=profile, namespace=namespace, tell=tell)


def explain_target(
    loaded: LoadedCluster,
    target: ExplainTarget,
    *,
    profile: Profile | None = None,
    namespace: str | None = None,
    tell: Callable[[str], None] = lambda _: None,
) -> ExplainResult:
    """Explain what `find_target` has found."""
    if target.kind is TargetKind.ALL_GANGS:
        return _all_gangs(loaded.cluster, namespace)
    engine = Engine(loaded.cluster, profile)
    if target.kind is TargetKind.GANG:
        return _gang(loaded, engine, target.key, tell=tell)
    explanation = explain_pod(engine, target.key)
    notes = _notes(loaded, {target.key}, evictions=len(explanation.evicts))
    return PodExplanationResult(explanation=explanation, cluster=loaded.cluster, notes=notes)


def _gang(loaded: LoadedCluster, engine: Engine, key: str, *, tell: Callable[[str], None]) -> GangExplanationResult:
    cluster = engine.cluster
    members = {cluster.pods.keys[row] for row in Gangs(cluster).rows(key)}
    explanation = explain_gang(engine, key, tell)
    notes = _notes(loaded, members, evictions=len(explanation.outcome.evicts))
    return GangExplanationResult(explanation=explanation, notes=notes)


def _all_gangs(cluster: Cluster, namespace: str | None) -> GangListResult:
    gangs = gang_statuses(cluster, namespace)
    if not gangs:
        where = f"namespace {namespace} of the input" if namespace else "the input"
        raise NotFoundError(f"no pod names a gang in {where}")
    return GangListResult(gangs=tuple(gangs))


def _notes(loaded: LoadedCluster, keys: set[str], *, evictions: int) -> tuple[str, ...]:
    pods = [pod for pod in loaded.input.pods if pod.key in keys]
    return tuple(missing_kinds(loaded.input, pods, evictions=evictions))
