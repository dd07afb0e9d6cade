"""Files into a snapshot just as they are written: what `tutti.app.load` prepares."""

from __future__ import annotations

from collections.abc import Sequence

from tutti.kube.reading.loader import load_files
from tutti.kube.reading.parsed_file import parse_file
from tutti.kube.reading.snapshot import Snapshot
from tutti.kube.reading.sources import read_sources


def load(paths: Sequence[str]) -> Snapshot:
    return load_files(map(parse_file, read_sources(paths)))
