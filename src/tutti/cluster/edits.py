"""The edits: the only way to change a cluster.

An edit is a frozen record. The same records serve as watch updates, undo log entries and contents of plans. `Put`
creates or replaces an object of any kind, including a volume bound to its claim. `Bind` and `Unbind` move a pod without
changing its object; `Evict` and `Unevict` let it terminate in the same way. `Hold` keeps room on a node for a pod that
is not bound yet. `Switch` turns a template node (a node that could be bought) into an active node and back.
"""

from __future__ import annotations

import msgspec

from tutti.kube.gangs.gang import Membership
from tutti.kube.objects import Object


class Edit(msgspec.Struct, frozen=True, tag=True, gc=False):
    """A change of a cluster."""


class Put(Edit, frozen=True, gc=False):
    """Create an object, or replace the object of the same kind and key.

    An update that is older than the known object, or that belongs to a removed object, changes nothing
    (`object_versions`). A pod that was bound with `Bind` stays on its node until `Unbind`, or until an update names a
    node or is of another pod of the same name. A hold stays until an update changes `status.nominatedNodeName` to
    another node than that of the hold. A template node stays inactive.
    """

    obj: Object


class PutTemplate(Edit, frozen=True, gc=False):
    """Add an inactive node: a node that could be bought."""

    obj: Object


class Remove(Edit, frozen=True, gc=False):
    """Delete an object; as with a watch, a missing object is not an error.

    With a uid, only the object with that uid is deleted, and later updates of it change nothing.
    """

    kind: str
    key: str
    uid: str | None = None


class Bind(Edit, frozen=True, gc=False):
    """Bind a pending pod to a node; `start` is its start time in microseconds."""

    pod: str
    node: str
    start: int | None = None


class Unbind(Edit, frozen=True, gc=False):
    """Remove a pod from its node; the pod is pending again, whatever its object says.

    With a uid, take back the binding of that pod by `Bind`: a pod that is gone, that has another uid, or whose object
    names a node by now is left as it is.
    """

    pod: str
    uid: str | None = None


class Evict(Edit, frozen=True, gc=False):
    """Let a pod begin to terminate at a time; its object does not say so yet.

    The pod terminates until `Unevict`, whatever later updates say: they may have been written before the eviction.
    """

    pod: str
    since: str


class Unevict(Edit, frozen=True, gc=False):
    """Take back an eviction by `Evict` that was refused.

    A pod that is gone, that has another uid, or whose object says that it terminates is left as it is.
    """

    pod: str
    uid: str | None = None


class Hold(Edit, frozen=True, gc=False):
    """Keep room on a node until the owner is bound or released, or until a time in microseconds.

    The owner is a pending pod, whose usage is held, or another name with amounts of its own: a reservation, or a node
    that is coming. An owner has at most one hold.
    """

    owner: str
    node: str
    until: int | None = None
    priority: int | None = None
    """The priority of the hold; None stands for the pod's own priority."""
    amounts: tuple[tuple[str, int], ...] = ()
    """What is held, by resource in base units, for an owner that is not a pod."""

    def effective_priority(self, pod_priority: int) -> int:
        """Return the hold's priority, or the given priority of its pod."""
        return pod_priority if self.priority is None else self.priority


class Release(Edit, frozen=True, gc=False):
    """Release the hold of an owner.

    Without `announce` the release counts as no event: pods that wait for room are not retried because of it. A session
    uses this for holds that it restores at once.
    """

    owner: str
    announce: bool = True


class Switch(Edit, frozen=True, gc=False):
    """Make a node active or inactive; an inactive node is ignored everywhere."""

    node: str
    on: bool


class SetPortAddresses(Edit, frozen=True, gc=False):
    """Set the addresses that use a host port on a row. Only undo needs this edit: see `Occupancy.ports`."""

    row: int
    protocol: str
    port: int
    addresses: frozenset[str]


class SetStart(Edit, frozen=True, gc=False):
    """Set the start time of a bound pod, in microseconds, until its object reports its own."""

    pod: str
    start: int


class SetArrivalOrder(Edit, frozen=True, gc=False):
    """Set the arrival order of a pod on its node. Only undo needs this edit: see `PodTable.order`."""

    pod: str
    order: int


class FinishedPod(msgspec.Struct, frozen=True, gc=False):
    """A pod that has succeeded or failed: only its identity and its group matter."""

    succeeded: bool
    uid: str | None = None
    version: int | None = None
    """The resourceVersion as a number."""
    membership: Membership | None = None


class SetFinished(Edit, frozen=True, gc=False):
    """Record that a pod has finished, or forget that it had. Only undo and copies by edits need this edit."""

    pod: str
    finished: FinishedPod | None


class RestorePod(Edit, frozen=True, gc=False):
    """Restore a pod as it was: its object, node, start time, arrival order, hold and eviction. Only undo needs this."""

    obj: Object
    node: str | None
    start: int
    order: int
    hold: Hold | None
    evicted: Put | None = None
    """The last object that a watch reported, if the pod terminates by `Evict`."""
