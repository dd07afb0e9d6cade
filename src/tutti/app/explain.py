"""The use case `explain`: why a pod is placed where it is, or why a gang waits and what would cure that.

Contract: pure; the cluster stays unchanged. `explain_target` finds the pod or gang that a user means.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import msgspec

from tutti.app.explain_target import ExplainTarget, TargetKind, find_target, scheduler_of
from tutti.app.loaded_cluster import LoadedCluster
from tutti.app.missing_kinds import missing_kinds
from tutti.app.result import Result
from tutti.app.scheduler_profile import scheduler_profile
from tutti.cluster.cluster import Cluster
from tutti.engine.explain.gang_explanation import GangExplanation, explain_gang
from tutti.engine.explain.gang_status import GangStatus, gang_statuses
from tutti.engine.explain.pod_explanation import PodExplanation, explain_pod
from tutti.engine.gangs.cluster_gangs import Gangs
from tutti.engine.placement.engine import Engine
from tutti.engine.placement.profile import Profile
from tutti.exceptions import NotFoundError
from tutti.kube.reading.sources import Source
from tutti.present.gang_explanation_text import gang_data, gang_list_text, gang_text
from tutti.present.pod_explanation_text import pod_data, pod_text


class PodExplanationResult(Result, frozen=True, kw_only=True):
    """The explanation of one pod, with the verdict of every node."""

    explanation: PodExplanation
    cluster: Cluster

    def text(self, *, wide: bool = False) -> str:
        """Return the outcome, and tables of the feasible and the refused nodes."""
        return pod_text(self.explanation, self.cluster, wide=wide)

    def data(self) -> dict[str, Any]:
        """Return the explanation as plain data."""
        return pod_data(self.explanation)


class GangExplanationResult(Result, frozen=True, kw_only=True):
    """The explanation of one gang, with its cures."""

    explanation: GangExplanation

    def text(self, *, wide: bool = False) -> str:
        """Return the gang's requirements, its outcome, and its cures."""
        return gang_text(self.explanation, wide=wide)

    def data(self) -> dict[str, Any]:
        """Return the explanation as plain data; cures contain the objects that they change."""
        return gang_data(self.explanation)


class GangListResult(Result, frozen=True, kw_only=True):
    """The status of every gang."""

    gangs: tuple[GangStatus, ...]

    def text(self, *, wide: bool = False) -> str:
        """Return a line for each gang."""
        return gang_list_text(self.gangs)

    def data(self) -> Any:
        """Return a dict for each gang."""
        return msgspec.to_builtins(self.gangs)


ExplainResult = PodExplanationResult | GangExplanationResult | GangListResult


def explain(
    loaded: LoadedCluster,
    what: str,
    *,
    configuration: Source | None = None,
    scheduler_name: str | None = None,
    namespace: str | None = None,
) -> ExplainResult:
    """Explain ``pod/NAME`` or ``gang/NAME``; ``gang`` alone lists all gangs.

    Without `scheduler_name`, the scheduler is that of the pod or the gang.
    """
    target = find_target(loaded.snapshot, loaded.cluster, what, namespace=namespace)
    profile = scheduler_profile(configuration, scheduler_name, preferred=scheduler_of(loaded.cluster, target))
    return explain_target(loaded, target, profile=profile, namespace=namespace)


def explain_target(
    loaded: LoadedCluster,
    target: ExplainTarget,
    *,
    profile: Profile | None = None,
    namespace: str | None = None,
    tell: Callable[[str], None] = lambda _: None,
) -> ExplainResult:
    """Explain the target that `find_target` returned; `tell` receives progress messages."""
    if target.kind is TargetKind.ALL_GANGS:
        return _list_gangs(loaded.cluster, namespace)
    engine = Engine(loaded.cluster, profile)
    if target.kind is TargetKind.GANG:
        return _explain_gang(loaded, engine, target.key, tell=tell)
    explanation = explain_pod(engine, target.key)
    notes = _notes(loaded, {target.key}, evictions=len(explanation.evicts))
    return PodExplanationResult(explanation=explanation, cluster=loaded.cluster, notes=notes)


def _explain_gang(
    loaded: LoadedCluster, engine: Engine, key: str, *, tell: Callable[[str], None]
) -> GangExplanationResult:
    cluster = engine.cluster
    members = {cluster.pods.keys[row] for row in Gangs(cluster).rows(key)}
    explanation = explain_gang(engine, key, tell)
    notes = _notes(loaded, members, evictions=len(explanation.outcome.evicts))
    return GangExplanationResult(explanation=explanation, notes=notes)


def _list_gangs(cluster: Cluster, namespace: str | None) -> GangListResult:
    gangs = gang_statuses(cluster, namespace)
    if not gangs:
        where = f"namespace {namespace} of the input" if namespace else "the input"
        raise NotFoundError(f"no pod names a gang in {where}")
    return GangListResult(gangs=tuple(gangs))


def _notes(loaded: LoadedCluster, keys: set[str], *, evictions: int) -> tuple[str, ...]:
    pods = [pod for pod in loaded.input.pods if pod.key in keys]
    return tuple(missing_kinds(loaded.input, pods, evictions=evictions))
