"""The pods of a request without a node: pods to place, and pods that no scheduler tries to place."""

from __future__ import annotations

from tutti.engine.placement.profile import Profile
from tutti.engine.session.plan import NotConsidered
from tutti.engine.session.queue_order import not_considered as skip_reason
from tutti.kube.objects import Pod
from tutti.recommend.build_request import is_pending
from tutti.recommend.records.request import Request


def pending_pods(request: Request) -> list[Pod]:
    """Return the pods without a node that the scheduler tries to place."""
    profile = Profile.default()
    return [pod for pod in _pending(request) if skip_reason(pod, profile) is None]


def not_considered(request: Request) -> list[NotConsidered]:
    """Return the pods without a node that no scheduler tries to place, each with the reason."""
    profile = Profile.default()
    return [skipped for pod in _pending(request) if (skipped := skip_reason(pod, profile)) is not None]


def _pending(request: Request) -> list[Pod]:
    return [obj for obj in request.objects if isinstance(obj, Pod) and is_pending(obj)]
