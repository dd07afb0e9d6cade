"""Whether the Kubernetes records in a document have the names that Kubernetes gives them, in its own case.

Contract: pure. Records of `kube.objects` leave out names that they do not know, so one in another case, which Go would
read, is lost in them without a word. `checker` gives a decoder that reads nothing and raises `msgspec.ValidationError`
at the first such name: it may be one in another case, or one that is not listed here. Records that refuse unknown
names themselves are only passed through.
"""

from __future__ import annotations

import types
from typing import Any

import msgspec
from msgspec import inspect

_OTHERS = {
    "PodSpec": "activeDeadlineSeconds automountServiceAccountToken dnsConfig dnsPolicy enableServiceLinks "
    "ephemeralContainers hostAliases hostIPC hostPID hostUsers hostname hostnameOverride imagePullSecrets os "
    "readinessGates securityContext serviceAccount serviceAccountName setHostnameAsFQDN shareProcessNamespace "
    "subdomain terminationGracePeriodSeconds workloadRef",
    "Container": "args command env envFrom imagePullPolicy lifecycle livenessProbe readinessProbe resizePolicy "
    "restartPolicyRules securityContext startupProbe stdin stdinOnce terminationMessagePath "
    "terminationMessagePolicy tty volumeDevices volumeMounts workingDir",
    "ContainerPort": "name",
    "ResourceRequirements": "claims",
    "Volume": "azureFile cephfs configMap csi downwardAPI fc flexVolume flocker gitRepo glusterfs nfs "
    "photonPersistentDisk projected quobyte scaleIO secret storageos vsphereVolume",
    "EmptyDir": "sizeLimit",
    "HostPath": "type",
    "Taint": "timeAdded",
    "ObjectMeta": "generation managedFields resourceVersion selfLink",
    "PriorityClassText": "apiVersion description Hash kind RowID SnapshotTimestamp",
}
"""Names of records that the records here do not have."""


def checker(kind: Any) -> msgspec.json.Decoder[Any] | None:
    """The decoder that checks the text of a value of a type; None where there are no names to look at."""
    mirror = _mirror(inspect.type_info(kind), {})
    return msgspec.json.Decoder(mirror) if mirror is not None else None


def _mirror(info: inspect.Type, known: dict[type, type]) -> Any | None:
    """A type with the names of another and none of its values; None where there are no names to look at."""
    if isinstance(info, inspect.UnionType):
        found = next((made for each in info.types if (made := _mirror(each, known)) is not None), None)
        return None if found is None else found | None
    if isinstance(info, inspect.ListType):
        inner = _mirror(info.item_type, known)
        return None if inner is None else types.GenericAlias(list, (inner,))
    if isinstance(info, inspect.DictType):
        inner = _mirror(info.value_type, known)
        return None if inner is None else types.GenericAlias(dict, (str, inner))
    return _record(info, known) if isinstance(info, inspect.StructType) else None


def _record(info: inspect.StructType, known: dict[type, type]) -> type | None:
    if info.cls in known:
        return known[info.cls]
    mirrored = {each.encode_name: _mirror(each.type, known) for each in info.fields}
    is_strict = info.forbid_unknown_fields
    names = [name for name, inner in mirrored.items() if inner is not None or not is_strict]
    if not names:
        return None
    fields: list[tuple[str, Any, Any]] = [
        (f"field_{place}", mirrored[name] or msgspec.Raw, msgspec.field(default=None, name=name))
        for place, name in enumerate(names)
    ]
    others = _OTHERS.get(info.cls.__name__, "").split()
    fields += [
        (f"other_{place}", msgspec.Raw, msgspec.field(default=None, name=name))
        for place, name in enumerate(others)
        if name not in mirrored
    ]
    made = msgspec.defstruct(info.cls.__name__, fields, forbid_unknown_fields=not is_strict, gc=False)
    known[info.cls] = made
    return made
