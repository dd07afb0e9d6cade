"""Requests to an API server as a test sees them, and what can go wrong with one."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal

from tests.support.memory_objects import Document, RefusedError


@dataclass
class ApiRequest:
    """A request that a client has sent."""

    method: str
    path: str
    query: dict[str, str]
    user_agent: str
    body: Any
    time: float
    """Of the monotonic clock."""
    kind: str = ""
    """The key of the kind, as in `MemoryObjects.resources`."""
    key: str = ""
    """Namespace and name of the object."""
    part: str = ""
    """The subresource."""
    status: int = 0
    """The status of the answer; 0 while there is none, and if the connection was dropped."""

    @property
    def is_watch(self) -> bool:
        """Whether the request asks for a watch."""
        return self.query.get("watch") in ("1", "true")

    @property
    def is_binding(self) -> bool:
        """Whether the request binds a pod."""
        return self.part == "binding"

    @property
    def is_write(self) -> bool:
        """Whether the request changes an object."""
        return self.method != "GET"


@dataclass
class Fault:
    """What goes wrong with a request; the fields apply in this order."""

    wait: asyncio.Event | None = None
    """Carry the request out only when this is set."""
    delay: float = 0.0
    """Seconds before the request is carried out."""
    refusal: RefusedError | None = None
    """Answer with this error."""
    drop: Literal["", "before", "after"] = ""
    """Close the connection without an answer, before or after the request is carried out."""
    wait_after: asyncio.Event | None = None
    """Carry the request out, and answer only when this is set."""
    cut_after: int | None = None
    """Close a watch in the middle of the line after this many events."""


def refused(status: int, reason: str = "", message: str = "no", **more: Any) -> Fault:
    """Return the fault of a request that is refused."""
    return Fault(refusal=RefusedError(status, reason, message, **more))


def faults(is_hit: Callable[[ApiRequest], bool], *given: Fault) -> Callable[[ApiRequest], Fault | None]:
    """Return a function that gives the first hit requests one fault each, in order."""
    left = list(given)

    def find(request: ApiRequest) -> Fault | None:
        return left.pop(0) if left and is_hit(request) else None

    return find


def status_object(refusal: RefusedError) -> Document:
    """Return the error object of an answer."""
    details: Document = {"causes": [{"reason": each} for each in refusal.causes]} if refusal.causes else {}
    return {
        "kind": "Status",
        "apiVersion": "v1",
        "status": "Failure",
        "message": refusal.message,
        "reason": refusal.reason,
        "code": refusal.status,
        "details": details,
    }
