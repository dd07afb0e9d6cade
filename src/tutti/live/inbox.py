"""The inbox: what has happened and is not in the cluster yet.

Watches and requests put entries in from the event loop; the session loop takes all of them at once and hands them to
the worker thread. So the cluster needs no lock: only the worker thread uses it.

A report about a pod that runs, such as the confirmation of a binding or a kubelet's update, helps no pod that waits. A
session for each of them would take most of the worker's time, so they wait for the next urgent entry, or for
`_NOT_URGENT_FOR`.

Contract: entries are taken in the order in which they were put. All methods belong to the event loop.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable

import msgspec

from tutti.client.reflector import Change
from tutti.cluster.edits import Put
from tutti.kube.objects import Pod

_NOT_URGENT_FOR = 0.05
"""Seconds that entries which are not urgent stay in the inbox."""
_FINISHED = ("Succeeded", "Failed")


class RefusedBinding(msgspec.Struct, frozen=True):
    """A planned binding that the server refused, or that was not sent."""

    pod: str
    uid: str | None
    node: str
    message: str
    avoids_node: bool = False
    """Whether the server has refused this pod on this node, so that the pod is tried elsewhere for a while."""


class RefusedEviction(msgspec.Struct, frozen=True):
    """A planned eviction that the server refused, or that was not sent."""

    pod: str
    uid: str | None
    by: str
    """The pod or gang for which it was planned."""
    message: str
    spares_victim: bool = True
    """Whether the server does not let this pod go, so that another one is chosen for a while."""


class TakenBackBinding(msgspec.Struct, frozen=True):
    """A planned binding that a dry run did not send and nobody else did: the pod is pending again."""

    pod: str
    uid: str | None


Entry = Change | RefusedBinding | RefusedEviction | TakenBackBinding


class Inbox:
    """See the module's docstring."""

    def __init__(self) -> None:
        self._entries: list[Entry] = []
        self._is_due = asyncio.Event()
        """Whether the entries should be taken now."""
        self._timer: asyncio.TimerHandle | None = None

    def __len__(self) -> int:
        return len(self._entries)

    def put(self, entries: Iterable[Entry]) -> None:
        """Add entries."""
        before = len(self._entries)
        self._entries.extend(entries)
        if self._is_due.is_set() or len(self._entries) == before:
            return
        if any(map(_is_urgent, self._entries[before:])):
            self._is_due.set()
        elif self._timer is None:
            self._timer = asyncio.get_running_loop().call_later(_NOT_URGENT_FOR, self._is_due.set)

    def wake(self) -> None:
        """End waiting, even if there are no entries."""
        self._is_due.set()

    def take(self) -> list[Entry]:
        """Return all entries and empty the inbox."""
        entries, self._entries = self._entries, []
        self._is_due.clear()
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        return entries

    async def wait(self, timeout: float | None) -> bool:
        """Wait until entries should be taken; return False if the time is over first."""
        if self._is_due.is_set() or (timeout is not None and timeout <= 0):
            return self._is_due.is_set()
        try:
            async with asyncio.timeout(timeout):
                await self._is_due.wait()
        except TimeoutError:
            return False
        return True


def _is_urgent(entry: Entry) -> bool:
    """Return whether an entry may help a pod that waits, or is one."""
    if not isinstance(entry, Put) or not isinstance(entry.obj, Pod):
        return True
    pod = entry.obj
    is_leaving = pod.metadata.deletion_timestamp is not None or pod.status.phase in _FINISHED
    return is_leaving or not pod.spec.node_name
