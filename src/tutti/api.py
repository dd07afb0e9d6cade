"""The Python API: load a cluster, schedule, explain, recommend and compare; docs/python.md has examples.

Contract: each function returns as a frozen record what a command prints; ``str()`` of the record is the command's
table, and ``data()`` the same as plain data. Errors are `TuttiError` with the command's messages. No function or result
changes the cluster that it is given. This module reads files and clocks, so that the use cases (`tutti.app`) are pure.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Iterable, Iterator, Mapping
from os import PathLike, fspath
from pathlib import Path
from types import ModuleType
from typing import Any

from msgspec.structs import replace

import tutti.recommend
from tutti.app.client_objects import kubernetes_dict
from tutti.app.explain import ExplainResult
from tutti.app.explain import explain as explain_cluster
from tutti.app.load import load_parsed
from tutti.app.loaded_cluster import LoadedCluster
from tutti.app.missing_kinds import missing_kinds_of_pending
from tutti.app.recommend.compare_with_peers import ComparisonResult, compare_with_peers
from tutti.app.recommend.make_recommendation import make_recommendation
from tutti.app.recommend.recommendation_request import recommendation_request, with_snapshot_time
from tutti.app.recommend.recommendation_result import RecommendationResult
from tutti.app.schedule import ScheduleResult, schedule_pods, selector_of
from tutti.app.scheduler_profile import scheduler_profile
from tutti.cluster.work.work_budget import WorkBudget
from tutti.exceptions import InputError, TuttiError
from tutti.kube.reading.parsed_file import ParsedFile, parse_file, parsed_trees
from tutti.kube.reading.sources import Source, read_sources
from tutti.recommend.records.request import DownOptions, RecommendOptions, Strategy
from tutti.wire.tutti_api.request import read_options
from tutti.wire.wire_document import without_byte_order_mark

__all__ = [
    "ComparisonResult",
    "ExplainResult",
    "LoadedCluster",
    "RecommendationResult",
    "ScheduleResult",
    "TuttiError",
    "compare",
    "explain",
    "load",
    "recommend",
    "schedule",
]

Text = str | bytes | PathLike[str]
"""A path, or text: bytes, a string that contains a newline, or a string that begins with ``{`` or ``[``, is text."""
_TIME_LIMIT = 5.0
"""The default time limit of a search in seconds, the same as the command's."""


def load(*sources: Text | Mapping[str, Any] | Iterable[Mapping[str, Any]] | object) -> LoadedCluster:
    """Read a cluster from paths, text, dicts, or objects of the official Kubernetes client.

    A path names a file or a directory; text is JSON or YAML. A dict is one object, or a list as the API gives it
    (``PodList``), with Kubernetes' own names or with those of the client's ``to_dict()``. Objects of a later source
    replace those of an earlier source. ``notes`` of the result reports ambiguous input.
    """
    if not sources:
        raise InputError("there is nothing to load: want paths, text, or Kubernetes objects")
    files, names = [], []
    for number, source in enumerate(sources, start=1):
        for file in _files(source, f"source {number}"):
            files.append(file)
            names.append(file.source.name)
    return LoadedCluster.of(load_parsed(files, name=", ".join(names)))


def schedule(
    cluster: LoadedCluster,
    *,
    namespace: str | None = None,
    selector: str | None = None,
    preemption: bool = True,
    consolidation: bool = False,
    profile: Text | None = None,
    scheduler_name: str | None = None,
) -> ScheduleResult:
    """Place all pending pods; `namespace` and `selector` choose the pods that the result shows.

    `profile` is a KubeSchedulerConfiguration. With `consolidation`, running pods are moved before any pod is evicted.
    """
    if consolidation and not preemption:
        raise InputError("consolidation=True and preemption=False exclude each other")
    parsed_profile = scheduler_profile(_one_source(profile, "profile"), scheduler_name)
    return schedule_pods(
        cluster.copy(),
        parsed_profile,
        preemption=preemption,
        consolidation=consolidation,
        namespace=namespace,
        selector=selector_of(selector),
    )


def explain(
    cluster: LoadedCluster,
    what: str,
    *,
    namespace: str | None = None,
    profile: Text | None = None,
    scheduler_name: str | None = None,
) -> ExplainResult:
    """Explain the verdict of every node on ``pod/NAME``, or why ``gang/NAME`` waits; ``gang`` alone lists all gangs.

    Without `scheduler_name`, the scheduler is that of the pod or the gang.
    """
    configuration = _one_source(profile, "profile")
    return explain_cluster(
        cluster, what, configuration=configuration, scheduler_name=scheduler_name, namespace=namespace
    )


def recommend(
    cluster: LoadedCluster,
    *,
    pools: Text | None = None,
    prices: Text | None = None,
    region: str = "",
    objective: str = "cost",
    strategy: str = "optimal",
    binder: str = "kube-scheduler",
    weights: Mapping[str, int] | None = None,
    time_limit: float = _TIME_LIMIT,
    down: bool | Mapping[str, Any] = False,
) -> RecommendationResult:
    """Recommend which nodes to buy for the pending pods, with their cost, and with `down` which nodes to remove.

    `pools` and `prices` are paths or text. Without `pools`, the NodePools of the cluster are used, or else pools that
    are inferred from its nodes. `down` may be a dict of settings, named as in docs/service.md or in snake case:
    ``down={"threshold": 0.4}``. `time_limit` counts seconds of work, so that every run gives the same answer.
    """
    option_values: dict[str, Any] = {
        "objective": objective,
        "strategy": strategy,
        "binder": binder,
        "timeLimit": time_limit,
    }
    if weights is not None:
        option_values["weights"] = dict(weights)
    if down is not False:
        option_values["down"] = down if down is True else {_camel_case(key): value for key, value in down.items()}
    now = DownOptions(now=time.time_ns() // 1000)
    options = read_options(option_values, RecommendOptions(strategy=Strategy.OPTIMAL, down=now))
    if down is False:
        options = replace(options, down=None)
    request = recommendation_request(
        cluster,
        pools=_one_source(pools, "pools"),
        prices=_one_source(prices, "prices"),
        region=region,
        options=options,
    )
    request = with_snapshot_time(request, down_options=None if down is False else now)
    answer = make_recommendation(request, _budget(time_limit))
    notes = (*missing_kinds_of_pending(cluster.input), *answer.notes)
    if answer.down is not None:
        notes += answer.down.notes
    return RecommendationResult(recommendation=answer, request=request, notes=notes)


def compare(recommended: RecommendationResult, *, time_limit: float = _TIME_LIMIT) -> ComparisonResult:
    """Return what Cluster Autoscaler, Karpenter and the original recommender would do for the same request."""
    return compare_with_peers(recommended.recommendation, recommended.request, time_limit, budget=_budget)


def _budget(seconds: float) -> WorkBudget:
    """Return a work budget of some seconds; the CPU time of this process limits work that is not counted."""
    return WorkBudget.of_seconds(seconds, time.process_time)


# Sources --------------------------------------------------------------------------------------------------------------


def _files(source: object, name: str) -> Iterator[ParsedFile]:
    if isinstance(source, (str, bytes, PathLike)):
        text = _path_or_text(source, name)
        yield from map(parse_file, read_sources([text]) if isinstance(text, str) else [text])
    elif isinstance(source, (list, tuple)):
        trees = [kubernetes_dict(each, f"{name}, object {place}") for place, each in enumerate(source, start=1)]
        yield parsed_trees(trees, name)
    else:
        yield parsed_trees([kubernetes_dict(source, name)], name)


def _one_source(source: Text | None, name: str) -> Source | None:
    """Return the one file or the text that an argument names; None if the argument is None."""
    if source is None:
        return None
    text = _path_or_text(source, name)
    if isinstance(text, str):
        if Path(text).is_dir():
            raise InputError("want one file, not a directory", file=text)
        (text,) = read_sources([text])
    return without_byte_order_mark(text)


def _path_or_text(source: Text, name: str) -> str | Source:
    if isinstance(source, bytes):
        return Source(name, source)
    if isinstance(source, str) and ("\n" in source or source.lstrip().startswith(("{", "["))):
        return Source(name, source.encode())
    return fspath(source)


def _camel_case(name: str) -> str:
    first, *rest = name.split("_")
    return first + "".join(word.capitalize() for word in rest)


class _CallablePackage(ModuleType):
    """The package `tutti.recommend`, callable as the function `recommend`.

    Importing a module of the package sets `tutti.recommend` to the package, which would hide the function.
    """

    __call__ = staticmethod(recommend)


sys.modules[tutti.recommend.__name__].__class__ = _CallablePackage
