"""The audit log of kube-apiserver: which requests it answered, and how.

Contract: entries are in the order in which the server completed the requests. The server writes an entry before it
sends the answer, so a client that has its answer finds the entry. Bodies are logged for bindings, evictions, deletes
and lease writes only (`audit_policy.json`).
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import parse_qsl, urlsplit

import msgspec


class AuditUser(msgspec.Struct, frozen=True):
    """Who sent a request."""

    username: str = ""


class AuditObject(msgspec.Struct, frozen=True, rename="camel"):
    """Which object a request named."""

    resource: str = ""
    subresource: str = ""
    namespace: str = ""
    name: str = ""
    uid: str = ""


class AuditStatus(msgspec.Struct, frozen=True):
    """How the server answered."""

    code: int = 0
    reason: str = ""


class AuditEntry(msgspec.Struct, frozen=True, rename="camel"):
    """One stage of one request; a watch has two, others one."""

    stage: str
    verb: str
    request_uri: str = msgspec.field(name="requestURI")
    audit_id: str = msgspec.field(name="auditID", default="")
    user: AuditUser = AuditUser()
    user_agent: str = ""
    object_ref: AuditObject = AuditObject()
    response_status: AuditStatus = AuditStatus()
    request_object: Any = None
    request_received_timestamp: str = ""
    stage_timestamp: str = ""

    @property
    def query(self) -> dict[str, str]:
        """The query of the request."""
        return dict(parse_qsl(urlsplit(self.request_uri).query))


_DECODER = msgspec.json.Decoder(AuditEntry)


def read_audit_log(path: Path, *, offset: int = 0) -> Iterator[AuditEntry]:
    """Yield the complete entries of a log that begin at a byte offset or later, such as an earlier size of the file."""
    with path.open("rb") as file:
        if offset:
            file.seek(offset - 1)
            file.readline()  # the server may have been in the middle of a line
        for line in file:
            if line.endswith(b"\n"):
                yield _DECODER.decode(line)
