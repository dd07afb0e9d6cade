"""Writes of replicas in the audit log: which entries count, and as what."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from tests.controlplane.faults.audited_writes import AuditedWrites
from tests.controlplane.faults.checks.history import AuditedWrite

TIME = "2026-01-01T00:00:10.500000Z"
SECONDS = 1767225610.5


def entry(verb: str, resource: str, body: dict[str, Any], *, sub: str = "", **fields: Any) -> dict[str, Any]:
    reference = {"resource": resource, "namespace": "default", "name": "a", "subresource": sub}
    given: dict[str, Any] = {
        "stage": "ResponseComplete",
        "verb": verb,
        "requestURI": "/",
        "userAgent": "tutti replica/1",
    }
    given |= {"objectRef": reference, "responseStatus": {"code": 201}, "requestObject": body, "stageTimestamp": TIME}
    return given | fields


def written(tmp_path: Path, *entries: dict[str, Any]) -> list[AuditedWrite]:
    path = tmp_path / "audit.log"
    path.write_text("".join(f"{json.dumps(each)}\n" for each in entries), "utf-8")
    return AuditedWrites(path).new_writes()


BINDING = entry("create", "pods", {"metadata": {"uid": "u"}, "target": {"name": "n"}}, sub="binding")


def test_a_binding(tmp_path: Path) -> None:
    assert written(tmp_path, BINDING) == [AuditedWrite(SECONDS, 1, "bind", "a", "u", "n")]


def test_deletes_and_evictions_name_the_uid(tmp_path: Path) -> None:
    options = {"preconditions": {"uid": "u"}}
    delete, evict = (
        entry("delete", "pods", options),
        entry("create", "pods", {"deleteOptions": options}, sub="eviction"),
    )
    found = written(tmp_path, delete, evict, entry("delete", "pods", {}))
    assert [(write.verb, write.uid) for write in found] == [("delete", "u"), ("evict", "u"), ("delete", "")]


def test_a_lease_has_a_holder_and_a_duration(tmp_path: Path) -> None:
    body = {"spec": {"holderIdentity": "x", "leaseDurationSeconds": 15}}
    (found,) = written(tmp_path, entry("update", "leases", body))
    assert (found.verb, found.holder, found.duration) == ("lease", "x", 15.0)


def test_what_does_not_count(tmp_path: Path) -> None:
    dry = {"deleteOptions": {"dryRun": ["All"]}}
    assert not written(
        tmp_path,
        BINDING | {"userAgent": "kube-controller-manager"},
        BINDING | {"responseStatus": {"code": 409}},
        BINDING | {"requestURI": "/api/v1/namespaces/default/pods/a/binding?dryRun=All"},
        BINDING | {"stage": "ResponseStarted"},
        entry("create", "pods", dry, sub="eviction"),
        entry("patch", "pods", {}, sub="status"),
        entry("delete", "events", {}),
    )


def test_the_log_is_read_as_it_grows(tmp_path: Path) -> None:
    path = tmp_path / "audit.log"
    line = json.dumps(BINDING).encode() + b"\n"
    path.write_bytes(line + line[:20])
    writes = AuditedWrites(path)
    assert len(writes.new_writes()) == 1
    path.write_bytes(line + line)
    assert len(writes.new_writes()) == 1
    assert not writes.new_writes()
