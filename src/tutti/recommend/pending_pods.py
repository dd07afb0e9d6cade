"""The pods of a request that wait for a node, and those that no scheduler tries to place."""

from __future__ import annotations

from tutti.engine.placement.profile import Profile
from tutti.engine.session.plan import NotConsidered
from tutti.engine.session.queue_order import not_considered as left_out
from tutti.kube.objects import Pod
from tutti.recommend.build_request import is_pending
from tutti.recommend.records.request import Request


def waiting(request: Request) -> list[Pod]:
    """The pods without a node that somebody tries to place."""
    profile = Profile.default()
    return [pod for pod in _pending(request) if left_out(pod, profile) is None]


def not_considered(request: Request) -> list[NotConsidered]:
    """The pods without a node that nobody tries to place, and why."""
    profile = Profile.default()
    return [found for pod in _pending(request) if (found := left_out(pod, profile)) is not None]


def _pending(request: Request) -> list[Pod]:
    return [obj for obj in request.objects if isinstance(obj, Pod) and is_pending(obj)]
