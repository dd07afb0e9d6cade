"""Kubernetes objects in a document, as the snapshot that a request is made from.

Contract: pure. A document is read as `app.load` reads files: every object checked, each object once, workloads with the
pods that they lack, pods without the volumes about which the document has nothing.
"""

from __future__ import annotations

from tutti.kube.admission.prepare import prepare_files
from tutti.kube.admission.unknown_volumes import drop_unknown_volumes
from tutti.kube.reading.loader import load_files
from tutti.kube.reading.parsed_file import ParsedFile
from tutti.kube.reading.snapshot import Snapshot


def read_snapshot(objects: ParsedFile) -> Snapshot:
    """The cluster that Kubernetes objects describe, prepared."""
    return drop_unknown_volumes(prepare_files(load_files([objects]), file=objects.source.name))
