"""Volumes and claims of a watch stream: what the API server reports, and what we assume for pods that we bind.

Volume ``v0`` is meant for claim ``c0``; the volume of claim ``d0`` is provisioned. `step` returns a change that the API
server makes, `assume` an edit of ours. `expected` is what a cluster must show, kept without the code under test.
"""

from __future__ import annotations

import random

from msgspec.structs import replace

from tests.support.volumes import DYNAMIC, bound_volume, claim, relabelled, selected_claim, volume
from tutti.cluster.edits import AssumeVolume, Put, Remove
from tutti.kube import objects as k

CLAIMS = ("c0", "c1", "d0", "d1")
NODES = ("n0", "n1")
Name = tuple[str, str]
_CREATED: dict[Name, k.Object] = {
    (obj.KIND, obj.key): obj
    for obj in (volume("v0"), volume("v1"), claim("c0"), claim("c1"), claim("d0", DYNAMIC), claim("d1", DYNAMIC))
}
_SELECTED = "volume.kubernetes.io/selected-node"


class WatchedVolumes:
    """See the module's docstring."""

    def __init__(self, draw: random.Random) -> None:
        self._random = draw
        self._reported: dict[Name, k.Object] = {}
        self._assumed: dict[Name, tuple[set[str], str]] = {}
        """The pods for which an object is assumed, and the node of the pods."""

    def expected(self) -> dict[Name, k.Object]:
        """Return the objects that a cluster must show."""
        return {name: self._shown(name) for name in self._reported}

    def _shown(self, name: Name) -> k.Object:
        reported = self._reported[name]
        return self._bound(reported, self._assumed[name][1]) if name in self._assumed else reported

    def _bound(self, obj: k.Object, node: str) -> k.Object:
        """Return an object as the binding of a pod on a node changes it."""
        version = int(obj.metadata.resource_version or "0")
        if isinstance(obj, k.PersistentVolume):
            return bound_volume(obj, obj.key.replace("v", "c"), version=version)
        assert isinstance(obj, k.PersistentVolumeClaim)
        return selected_claim(obj, node, version=version)

    # What we do -------------------------------------------------------------------------------------------------------

    def assume(self, pod: str, claim_name: str, node: str) -> AssumeVolume | None:
        """Assume what a pod on a node needs for its claim; None if the claim does not need it, or cannot get it."""
        name = ("PersistentVolumeClaim", f"default/{claim_name}")
        if claim_name.startswith("c"):
            name = ("PersistentVolume", claim_name.replace("c", "v"))
        reported, (pods, chosen) = self._reported.get(name), self._assumed.get(name, (set(), node))
        if reported is None or _is_bound(reported) or (chosen != node and name[0] == "PersistentVolumeClaim"):
            return None
        self._assumed[name] = ({*pods, pod}, chosen)
        return AssumeVolume(self._shown(name), pod)

    def leave(self, pod: str) -> None:
        """Give back what is assumed for a pod that leaves its node."""
        for name, (pods, node) in list(self._assumed.items()):
            self._assumed[name] = (pods - {pod}, node)
            if not pods - {pod}:
                del self._assumed[name]

    # What the API server does -----------------------------------------------------------------------------------------

    def step(self) -> tuple[Name, k.Object | None]:
        """Return an object that changes, without its new version, or None for its removal.

        A new object has no uid: the caller gives it one, and a version, and calls `report`.
        """
        draw = self._random
        name = draw.choice(list(_CREATED))
        old = self._reported.get(name)
        if old is None:
            return name, replace(_CREATED[name], metadata=replace(_CREATED[name].metadata, uid=None))
        match draw.randrange(8):
            case 0 | 1:
                return name, relabelled(old, draw.choice("xyz"))
            case 2 if name in self._assumed:  # the status of an object that is being bound
                return name, replace(old, status=k.ClaimStatus(phase=draw.choice(("Pending", "Available"))))
            case 3 | 4 if name in self._assumed:
                return name, self._shown(name)
            case 5 if not _is_bound(old):
                return name, self._bound_by_others(old)
            case 6 if _is_bound(old):
                return name, _unbound(old)
            case 7:
                return name, None
            case _:
                return name, old

    def _bound_by_others(self, old: k.Object) -> k.Object:
        if isinstance(old, k.PersistentVolume):
            return bound_volume(old, self._random.choice(("c0", "c1", "other")))
        assert isinstance(old, k.PersistentVolumeClaim)
        if self._random.random() < 0.5:
            return selected_claim(old, self._random.choice(NODES))
        return replace(old, spec=replace(old.spec, volume_name="some-volume"))

    def report(self, name: Name, new: k.Object | None) -> Put | Remove:
        """Record that a watch reports an object or its removal; return the edit."""
        old = self._reported.get(name)
        if new is None or (old is not None and _is_bound(old) != _is_bound(new)):
            self._assumed.pop(name, None)
        if new is None:
            assert old is not None
            del self._reported[name]
            return Remove(*name, old.metadata.uid)
        self._reported[name] = new
        return Put(new)


def _is_bound(obj: k.Object) -> bool:
    if isinstance(obj, k.PersistentVolume):
        return obj.spec.claim_ref is not None
    assert isinstance(obj, k.PersistentVolumeClaim)
    return obj.spec.volume_name is not None or _SELECTED in (obj.metadata.annotations or {})


def _unbound(obj: k.Object) -> k.Object:
    meta = replace(obj.metadata, annotations=None)
    if isinstance(obj, k.PersistentVolume):
        return replace(obj, metadata=meta, spec=replace(obj.spec, claim_ref=None))
    assert isinstance(obj, k.PersistentVolumeClaim)
    return replace(obj, metadata=meta, spec=replace(obj.spec, volume_name=None))
