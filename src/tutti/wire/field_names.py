"""A check that the fields of Kubernetes records in a document have their usual names, in the usual case.

Contract: pure. Records of `kube.objects` ignore unknown names, so a name in another case, which Go would accept, would
be lost silently. `checker` returns a decoder that builds no values and raises `msgspec.ValidationError` at the first
unknown name: a name in another case, or a name that is not listed here. Records that reject unknown names themselves
are not checked again.
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
"""By record: fields of Kubernetes that the record of `kube.objects` does not have."""


def checker(kind: Any) -> msgspec.json.Decoder[Any] | None:
    """Return a decoder that checks the names in a value of a type; None if the type has no names to check."""
    mirror = _mirror(inspect.type_info(kind), {})
    return msgspec.json.Decoder(mirror) if mirror is not None else None


def _mirror(info: inspect.Type, known: dict[type, type]) -> Any | None:
    """Return a type with the names of another type and without its values; None if it has no names to check."""
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
