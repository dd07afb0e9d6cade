"""The dump of a cluster: what commands read with `-f`, as kubectl would print it.

Contract: pure. A dump is one ``v1 List`` in JSON with an object in each line. It has the fields that Tutti reads, so
that the same objects come back from it. A kind without objects is an empty list among the items: the cluster has no
such objects, which differs from a kind that was not read. The same objects give the same bytes. The caller has removed
private fields (`kube.private_fields`).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

import msgspec

from tutti.kube.objects import Object

_START, _END = b'{"apiVersion":"v1","kind":"List","metadata":{},"items":[', b"\n]}\n"


class DumpedKind(NamedTuple):
    """All objects of one kind, with the API version in which the server has them."""

    api_version: str
    kind: type[Object]
    objects: Sequence[Object]


def dump_chunks(kinds: Iterable[DumpedKind]) -> Iterator[bytes]:
    """Yield the bytes of a dump, about one object at a time."""
    yield _START
    separator = b"\n"
    for api_version, kind, objects in kinds:
        version = msgspec.json.encode(api_version)
        if not objects:
            yield b'%s{"apiVersion":%s,"kind":"%sList","items":[]}' % (separator, version, kind.WIRE_KIND.encode())
            separator = b",\n"
        start = b'{"apiVersion":%s,"kind":"%s",' % (version, kind.WIRE_KIND.encode())
        for obj in objects:
            yield separator + start + msgspec.json.encode(obj)[1:]  # every object has metadata, at least its name
            separator = b",\n"
    yield _END
