"""The history of a soak run: frozen records of what happened, as JSON lines.

The recorder, the workload, the replicas and the proxy write records; `History` holds them sorted by time. All times are
seconds of the wall clock of one machine, because the audit log of the API server has no other. Records are tagged, so
that one file holds all kinds.

Contract: a record never changes. `read_records` skips a last line that was cut.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path

import msgspec


class PodChange(msgspec.Struct, frozen=True, omit_defaults=True, tag="pod"):
    """A pod as the watch showed it at a moment."""

    time: float
    uid: str
    name: str
    gang: str = ""
    node: str = ""
    phase: str = "Pending"
    deleting: bool = False
    gone: bool = False
    owner: str = ""
    priority: int = 0
    cpu: int = 0
    """Millicores that the pod requests."""
    memory: int = 0
    nominated: str = ""
    reason: str = ""
    """The reason of PodScheduled=False."""
    message: str = ""
    disruption: str = ""
    """The reason of DisruptionTarget."""
    disruption_message: str = ""

    @property
    def is_running(self) -> bool:
        """Return whether the pod is bound and takes room."""
        return bool(self.node) and not self.gone and self.phase not in ("Succeeded", "Failed")

    @property
    def is_pending(self) -> bool:
        """Return whether the pod waits for a node."""
        return not self.node and not self.gone and not self.deleting and self.phase == "Pending"


class NodeChange(msgspec.Struct, frozen=True, omit_defaults=True, tag="node"):
    """What a node can hold from a moment on."""

    time: float
    name: str
    cpu: int = 0
    memory: int = 0
    pods: int = 0
    gone: bool = False


class LeaseChange(msgspec.Struct, frozen=True, omit_defaults=True, tag="lease"):
    """Who holds a lease from a moment on."""

    time: float
    name: str
    holder: str = ""


class GangChange(msgspec.Struct, frozen=True, omit_defaults=True, tag="gang"):
    """A gang that the workload creates, or begins to delete."""

    time: float
    name: str
    minimum: int = 0
    priority: int = 0
    ended: bool = False


class ProcessChange(msgspec.Struct, frozen=True, tag="process"):
    """A replica of the scheduler: start, kill, exit, freeze or thaw."""

    time: float
    replica: int
    event: str


class Fault(msgspec.Struct, frozen=True, omit_defaults=True, tag="fault"):
    """A fault that the proxy injected, from its first to its last effect."""

    time: float
    end: float
    monotonic: float
    replica: int
    kind: str
    request: str
    """The class of the request: bind, write, event, read, watch, lease; or all."""
    method: str = ""
    path: str = ""
    retry_after: float = 0.0


class OpenWatch(msgspec.Struct, frozen=True, omit_defaults=True, tag="watch"):
    """A watch that was open through the proxy."""

    time: float
    end: float
    replica: int
    resource: str


class AuditedWrite(msgspec.Struct, frozen=True, omit_defaults=True, tag="write"):
    """A write of a scheduler's replica that the API server accepted, from the audit log."""

    time: float
    replica: int
    verb: str
    """bind, evict, delete or lease."""
    name: str
    uid: str = ""
    node: str = ""
    holder: str = ""
    duration: float = 0.0
    """The duration of the lease in seconds."""


Record = PodChange | NodeChange | LeaseChange | GangChange | ProcessChange | Fault | OpenWatch | AuditedWrite

_DECODER = msgspec.json.Decoder(Record)
_ENCODER = msgspec.json.Encoder()


class History(msgspec.Struct, frozen=True, kw_only=True):
    """All records of a run, each list sorted by time."""

    start: float
    end: float
    pods: list[PodChange] = []
    nodes: list[NodeChange] = []
    leases: list[LeaseChange] = []
    gangs: list[GangChange] = []
    processes: list[ProcessChange] = []
    faults: list[Fault] = []
    watches: list[OpenWatch] = []
    writes: list[AuditedWrite] = []


_LISTS = {
    PodChange: "pods",
    NodeChange: "nodes",
    LeaseChange: "leases",
    GangChange: "gangs",
    ProcessChange: "processes",
    Fault: "faults",
    OpenWatch: "watches",
    AuditedWrite: "writes",
}


def history_of(records: Iterable[Record], *, end: float | None = None) -> History:
    """Sort records into a history; the order of records with the same time stays."""
    lists: dict[str, list[Record]] = {name: [] for name in _LISTS.values()}
    for record in records:
        lists[_LISTS[type(record)]].append(record)
    for each in lists.values():
        each.sort(key=lambda record: record.time)
    times = [record.time for each in lists.values() for record in each]
    last = max(times, default=0.0)
    return History(start=min(times, default=0.0), end=last if end is None else end, **lists)  # type: ignore[arg-type]


def encode_record(record: Record) -> bytes:
    """Return a record as one line."""
    return _ENCODER.encode(record) + b"\n"


def read_records(path: Path) -> Iterator[Record]:
    """Yield the records of a file; a file that does not exist has none."""
    if not path.exists():
        return
    with path.open("rb") as file:
        for line in file:
            if line.endswith(b"\n"):
                yield _DECODER.decode(line)
