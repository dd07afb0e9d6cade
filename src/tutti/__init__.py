"""Tutti: one scheduling brain for Kubernetes batch and ML clusters.

The names of the Python API (`api`) are available here and are imported on first use, so that ``import tutti`` and
``tutti --help`` stay fast. docs/python.md has examples. Packages, the highest first:

- `cli`, `serve`            which command line options and HTTP requests exist?
- `conformance`             does Tutti give the answers that were recorded from real programs?
- `app`                     what do the use cases do: load, schedule, explain, recommend, compare?
- `present`, `wire`         how are answers printed, and which formats of other programs are read and written?
- `recommend`, `autoscalers`, `market`  which nodes to buy or remove, what would real autoscalers do, what is on offer?
- `engine`, `cluster`       how are pods placed, and how is the cluster's state stored and changed?
- `kube`, `exceptions`      how are Kubernetes objects read, and which errors are meant for the user?
"""

TYPE_CHECKING = False  # importing `typing` would take longer than the rest of this module
if TYPE_CHECKING:
    from tutti.api import (
        ComparisonResult,
        ExplainResult,
        LoadedCluster,
        RecommendationResult,
        ScheduleResult,
        TuttiError,
        compare,
        explain,
        load,
        recommend,
        schedule,
    )

__version__ = "0.1.0"
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


def __getattr__(name: str) -> object:
    if name not in __all__:
        raise AttributeError(f"module 'tutti' has no attribute {name!r}")
    from tutti import api

    return globals().setdefault(name, getattr(api, name))


def __dir__() -> list[str]:
    return [*globals(), *__all__]
