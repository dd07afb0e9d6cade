"""Tutti: one scheduling brain for Kubernetes batch and ML clusters.

The Python API is in `tutti.api`; its names are here too, and are imported when they are used, so that
``import tutti`` and ``tutti --help`` stay fast. docs/python.md has examples.
"""

TYPE_CHECKING = False  # importing typing would take longer than all else here
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
