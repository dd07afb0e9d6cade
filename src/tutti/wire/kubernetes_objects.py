"""The snapshot that the Kubernetes objects of a document describe.

Contract: pure. A document is read as `app.load` reads files: every object is validated, duplicates are dropped, missing
pods of workloads are added, and volumes that the document does not describe are removed from pods.
"""

from __future__ import annotations

from tutti.kube.admission.prepare import prepare_files
from tutti.kube.admission.unknown_volumes import drop_unknown_volumes
from tutti.kube.reading.loader import load_files
from tutti.kube.reading.parsed_file import ParsedFile
from tutti.kube.reading.snapshot import Snapshot


def read_snapshot(objects: ParsedFile) -> Snapshot:
    """Return the prepared cluster that Kubernetes objects describe."""
    return drop_unknown_volumes(prepare_files(load_files([objects]), file=objects.source.name))
