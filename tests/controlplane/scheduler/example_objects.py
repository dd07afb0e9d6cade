"""The objects of a YAML file of examples, and how to apply them to a cluster.

Contract: `apply` is a server-side apply, so a file may be applied twice. An object without a namespace goes into the
one that the caller names, as with `kubectl apply -n`.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import cast

import yaml

from tests.controlplane.cluster_setup import send
from tests.support.documents import Document
from tests.support.paths import EXAMPLES
from tutti.client.api_client import ApiClient
from tutti.client.resources import Resource

_CLUSTER_SCOPE = {"ClusterRole", "ClusterRoleBinding", "FlowSchema", "PriorityClass"}
_APPLY_PATCH = "application/apply-patch+yaml"


def example_objects(name: str) -> list[Document]:
    """Return the objects of a file in `examples/live`."""
    return read_objects(EXAMPLES / "live" / name)


def read_objects(path: Path) -> list[Document]:
    """Return the objects of a file."""
    return [cast(Document, each) for each in yaml.safe_load_all(path.read_text("utf-8")) if each]


def resource_of(document: Document) -> Resource:
    """Return the resource of an object of the examples."""
    group, _, version = document["apiVersion"].rpartition("/")
    kind = document["kind"]
    plural = re.sub(r"s$", "se", kind.lower()) + "s"
    return Resource(group, version, plural, kind not in _CLUSTER_SCOPE, kind)


async def apply(
    client: ApiClient, documents: list[Document], *, namespace: str = "default", dry_run: bool = False
) -> list[Document]:
    """Apply objects, or ask whether they could be applied; return them as the server stores them."""
    stored = []
    for document in documents:
        metadata = document["metadata"]
        path = resource_of(document).path(metadata.get("namespace", namespace), metadata["name"])
        query = {"fieldManager": "tutti-tests", "force": "true", "fieldValidation": "Strict"}
        if dry_run:
            query["dryRun"] = "All"
        stored.append(await send(client, "PATCH", path, document, content_type=_APPLY_PATCH, query=query))
    return stored
