"""The edits: the one way to change a cluster.

An edit is a frozen record. The same record is the watch's delta, the undo log's entry, the plan's content, the
rehearsal's event and the recording's line. `Put` creates or replaces an object of any kind, a volume bound to its claim
included; `Bind` and `Unbind` move a pod without touching its object; `Hold` keeps room on a node for a pod that is not
there yet; `Switch` turns a template node, one that could be bought, into one that is there.
"""

from __future__ import annotations

import msgspec

from tutti.kube.objects import Object


class Edit(msgspec.Struct, frozen=True, tag=True, gc=False):
    """A change of a cluster."""


class Put(Edit, frozen=True, gc=False):
    """Create an object, or replace the one of the same kind and key.

    A pod's object says where the pod is: an update that names no node takes a pod off the node that it was bound to.
    What is held for a pod is given up, unless the update tells the scheduler nothing. A template stays switched off.
    """

    obj: Object


class PutTemplate(Edit, frozen=True, gc=False):
    """Add a node that is switched off: one that could be bought."""

    obj: Object


class Remove(Edit, frozen=True, gc=False):
    """Delete an object; one that is not there is no error, as with a watch."""

    kind: str
    key: str


class Bind(Edit, frozen=True, gc=False):
    """Put a pending pod on a node; `start` is when it starts there, in microseconds."""

    pod: str
    node: str
    start: int | None = None


class Unbind(Edit, frozen=True, gc=False):
    """Take a pod off its node; it is pending again."""

    pod: str


class Hold(Edit, frozen=True, gc=False):
    """Keep room on a node for a pending pod until it is bound or released, or until a time (in microseconds)."""

    pod: str
    node: str
    until: int | None = None
    priority: int | None = None
    """How much the hold matters; None stands for the pod's own priority."""

    def rank(self, priority: int) -> int:
        """Give how much the hold matters, for a pod of a priority."""
        return priority if self.priority is None else self.priority


class Release(Edit, frozen=True, gc=False):
    """Give up what was held for a pod.

    Without `announce` the release counts as no event: pods that wait for room are not retried because of it. A session
    uses this for holds that it puts back at once.
    """

    pod: str
    announce: bool = True


class Switch(Edit, frozen=True, gc=False):
    """Turn a node on or off; a node that is off takes part in nothing."""

    node: str
    on: bool


class SetPortAddresses(Edit, frozen=True, gc=False):
    """Set at which addresses a host port is taken on a row. Only an undo needs it: see `Occupancy.ports`."""

    row: int
    protocol: str
    port: int
    addresses: frozenset[str]


class SetArrivalOrder(Edit, frozen=True, gc=False):
    """Set a pod's place in the order in which pods came to nodes. Only an undo needs it: see `PodTable.order`."""

    pod: str
    order: int
