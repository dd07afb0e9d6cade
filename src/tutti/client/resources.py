"""Resources of the API: the paths of a kind's objects.

Contract: frozen; `namespace` is ignored for kinds that belong to no namespace.
"""

from __future__ import annotations

import re
from urllib.parse import quote

import msgspec

_SAFE = re.compile(r"[a-z0-9./-]*").fullmatch
"""Matches paths of names as Kubernetes allows them, which need no quoting."""


class Resource(msgspec.Struct, frozen=True):
    """A kind as one API server serves it."""

    group: str
    """Empty for the core group."""
    version: str
    plural: str
    namespaced: bool
    kind: str
    """The key in `tutti.kube.objects.KINDS`, or the kind of the API."""

    @property
    def api_version(self) -> str:
        """The API version of its objects."""
        return f"{self.group}/{self.version}" if self.group else self.version

    @property
    def name(self) -> str:
        """The name as in RBAC rules and kubectl: plural and group."""
        return f"{self.plural}.{self.group}" if self.group else self.plural

    def path(self, namespace: str = "", name: str = "", subresource: str = "") -> str:
        """Return the path of all objects, those of a namespace, one object, or a part of it."""
        parts = ["apis", self.group, self.version] if self.group else ["api", self.version]
        if namespace and self.namespaced:
            parts += ["namespaces", namespace]
        parts += [part for part in (self.plural, name, subresource) if part]
        path = "/".join(parts)
        if _SAFE(path) and ".." not in path:
            return f"/{path}"
        return "/" + "/".join(quote(part, safe="") for part in parts)


PODS = Resource("", "v1", "pods", True, "Pod")
EVENTS = Resource("events.k8s.io", "v1", "events", True, "Event")
LEASES = Resource("coordination.k8s.io", "v1", "leases", True, "Lease")
