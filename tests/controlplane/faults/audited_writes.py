"""Writes of the scheduler's replicas that the API server accepted, read from its audit log.

The proxy adds the number of the replica to each User-Agent; all other requests are skipped.

Contract: `new_writes` returns what the log has got since the last call, in the log's order.
"""

from __future__ import annotations

import re
from datetime import datetime
from pathlib import Path

import msgspec

from tests.controlplane.audit_log import AuditEntry
from tests.controlplane.faults.checks.history import AuditedWrite

_REPLICA = re.compile(r"replica/(\d+)$")
_DECODER = msgspec.json.Decoder(AuditEntry)


class AuditedWrites:
    """See the module's docstring."""

    def __init__(self, path: Path) -> None:
        self._path, self._offset = path, 0

    def new_writes(self) -> list[AuditedWrite]:
        """Return the writes since the last call."""
        found = []
        with self._path.open("rb") as file:
            file.seek(self._offset)
            for line in file:
                if not line.endswith(b"\n"):
                    break
                self._offset += len(line)
                if b" replica/" in line:
                    write = audited_write(_DECODER.decode(line))
                    if write is not None:
                        found.append(write)
        return found


def audited_write(entry: AuditEntry) -> AuditedWrite | None:
    """Return the write that an entry describes; None for reads, refusals and dry runs."""
    replica = _REPLICA.search(entry.user_agent)
    target, body = entry.object_ref, entry.request_object or {}
    accepted = entry.stage == "ResponseComplete" and entry.response_status.code < 300
    if replica is None or not accepted or "dryRun" in entry.query:
        return None
    # Binding and lease writes take effect before the answer; the end of the request is the safer time for renewals.
    time = datetime.fromisoformat(entry.stage_timestamp).timestamp()
    number = int(replica[1])
    if target.resource == "leases" and entry.verb in ("create", "update", "patch"):
        spec = body.get("spec", {})
        holder, duration = spec.get("holderIdentity") or "", float(spec.get("leaseDurationSeconds") or 0)
        return AuditedWrite(time, number, "lease", target.name, holder=holder, duration=duration)
    if target.resource != "pods":
        return None
    if target.subresource == "binding":
        uid = body.get("metadata", {}).get("uid") or target.uid
        return AuditedWrite(time, number, "bind", target.name, uid, body.get("target", {}).get("name", ""))
    if target.subresource == "eviction":
        options = body.get("deleteOptions") or {}
        if options.get("dryRun"):
            return None
        return AuditedWrite(time, number, "evict", target.name, (options.get("preconditions") or {}).get("uid", ""))
    if entry.verb == "delete" and not target.subresource:
        return AuditedWrite(time, number, "delete", target.name, (body.get("preconditions") or {}).get("uid", ""))
    return None
