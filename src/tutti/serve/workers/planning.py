"""The planner of a worker: from the bytes of a request to the bytes of its answer.

Contract: `Planner.answer` never raises. An error that the client can fix is a 4xx with its object and field. Any other
error is a 500 with the request's id; the reply has the traceback, without values, for the server log. The time limit of
the search counts work, with the CPU time of this process as its clock, so that the plan does not depend on the load of
the machine.
"""

from __future__ import annotations

import time
import traceback
import zlib
from collections.abc import Iterator
from contextlib import contextmanager

import msgspec

from tutti.app.recommend.make_recommendation import make_recommendation
from tutti.cluster.work.work_budget import WorkBudget
from tutti.exceptions import InputError, TuttiError
from tutti.kube.objects import Pod
from tutti.kube.reading.sources import Source
from tutti.kube.reading.yaml_text import parse_yaml
from tutti.recommend.build_request import price_book
from tutti.recommend.records.request import Binder, DownOptions, Objective, RecommendOptions, Request, ResourceWeights
from tutti.serve.http.refusals import (
    BAD_REQUEST,
    INTERNAL,
    RefusedError,
    internal_error,
    refusal_body,
    refusal_of,
    too_large,
)
from tutti.serve.workers.messages import PlanJob, QueryOptions, Reply, Route, WorkerSetup
from tutti.wire.gardener.response import gardener_answer
from tutti.wire.request_formats import ParsedRequest, identify, parse_request
from tutti.wire.scaling_advisor.response import advisor_answer
from tutti.wire.scaling_advisor.schema import PlannerText, reference_of
from tutti.wire.tutti_api.build_response import recommendation_answer
from tutti.wire.tutti_api.request import UndecodedBody
from tutti.wire.wire_document import WireFormat, has_kubernetes_fields

_FORMATS = {Route.GARDENER: WireFormat.GARDENER, Route.ADVISOR: WireFormat.ADVISOR}
"""Routes whose bodies have one format."""
_GZIP = 16 + zlib.MAX_WBITS
_GZIP_MAGIC = b"\x1f\x8b"
_MALFORMED = "JSON is malformed"
"""The start of the decoders' message about text that is not JSON."""
_BODY = "body.json"
"""A name that ends in .json, so that the body is not read as YAML; no message has this name."""
_WARM_UP = (
    b'{"nodePools": [{"name": "p", "zones": ["eu-west-1a"], "max": 2, "current": 0, "instanceType": "m5.large"}],'
    b' "pods": [{"namePrefix": "a", "requests": {"cpu": "1", "memory": "1Gi"}, "count": 3}]}'
)


class Planner:
    """Answers plan jobs with the settings of one server."""

    def __init__(self, setup: WorkerSetup) -> None:
        self._setup = setup
        self._book = price_book(setup.prices)
        self._pools = None if setup.pools is None else _as_json(setup.pools)
        """The server's pools in the format of a body."""

    def warm_up(self) -> None:
        """Make a small plan, so that the first client does not wait for imports and price tables."""
        reply, _ = self.answer(PlanJob(id="", route=Route.TUTTI), _WARM_UP)
        if reply.fault:
            raise RuntimeError(reply.fault)

    def answer(self, job: PlanJob, body: bytes) -> tuple[Reply, bytes]:
        """Return the reply to a job, and the body of the answer."""
        started = time.monotonic()
        planner: PlannerText | None = None
        pods: int | None = None
        fault = ""
        try:
            with _body_errors():
                parsed = parse_request(identify(self._body_source(job, body), _FORMATS.get(job.route)))
                planner = reference_of(parsed.content) if isinstance(parsed.content, PlannerText) else None
                request, seconds = self._read(job, parsed)
                del parsed  # its records need as much memory as the request
            pods = sum(isinstance(each, Pod) for each in request.objects)
            plan = make_recommendation(request, WorkBudget.of_seconds(seconds, time.process_time))
            answer: msgspec.Struct
            if job.route is Route.GARDENER:
                answer = gardener_answer(plan, request, millis=_millis(started))
            elif job.route is Route.ADVISOR:
                answer = advisor_answer(plan, request, planner=planner or PlannerText(), millis=_millis(started))
            else:
                answer = recommendation_answer(plan, request.catalogue.currency)
            return Reply(status=200, pods=pods), msgspec.json.encode(answer)
        except TuttiError as error:
            refusal = refusal_of(error)
        except MemoryError:
            refusal = RefusedError(INTERNAL, "the request needs more memory than there is")
        except Exception as error:  # an error in Tutti: only the server log has the details
            fault = _traceback_text(error)
            refusal = RefusedError(INTERNAL, internal_error(job.id))
        text = refusal_body(job.route, refusal, request_id=job.id, millis=_millis(started), planner=planner)
        return Reply(status=refusal.status, pods=pods, fault=fault), text

    def _body_source(self, job: PlanJob, body: bytes) -> Source:
        """Return the decompressed body."""
        data = decompressed(body, self._setup.max_body) if job.is_gzip else body
        if not data.strip():
            raise InputError("the body is empty")
        if data.startswith(_GZIP_MAGIC):
            raise InputError("not JSON but gzip: the service reads JSON; send Content-Encoding: gzip")
        return Source(_BODY, data)

    def _read(self, job: PlanJob, parsed: ParsedRequest) -> tuple[Request, float]:
        """Return the request of a decoded body, and the time limit of its search in seconds."""
        document, query = parsed.document, job.options
        is_down = query.down is not False if job.route is Route.GARDENER else query.down is True
        seconds = self._seconds(parsed.seconds(self._seconds(query.time_limit)))
        pools, region = None, ""
        if document.format is WireFormat.KUBERNETES:
            if document.fields is not None and not has_kubernetes_fields(document.fields):
                raise InputError('want a kubectl List, a Gardener snapshot, or {"cluster": ...}')
            pools, region = self._setup.pools, self._setup.region
        elif isinstance(parsed.content, UndecodedBody):
            body = parsed.content.with_defaults(pools=self._pools, region=self._setup.region)
            parsed = ParsedRequest(document, body)
        request = parsed.read(self._book, options=_options(query, is_down=is_down), pools=pools, region=region)
        return request, seconds

    def _seconds(self, requested: float | None) -> float:
        if requested is None:
            return self._setup.time_limit
        if not 0 < requested <= self._setup.max_time_limit:
            most = self._setup.max_time_limit
            raise RefusedError(BAD_REQUEST, f"want seconds above 0 and up to {most:g}", field="timeLimit")
        return requested


def _options(query: QueryOptions, *, is_down: bool) -> RecommendOptions:
    return RecommendOptions(
        objective=query.objective or Objective.COST,
        strategy=query.strategy,
        binder=query.binder or Binder.KUBE_SCHEDULER,
        weights=query.weights or ResourceWeights(),
        down=DownOptions() if is_down else None,
    )


@contextmanager
def _body_errors() -> Iterator[None]:
    """Turn errors in the text of a body into messages of the service."""
    try:
        yield
    except RecursionError:
        raise InputError("nested too deeply") from None
    except UnicodeError:
        raise InputError("not text in UTF-8") from None
    except InputError as error:
        if not error.problem.startswith(_MALFORMED):
            raise
        raise InputError(f"{error.problem}; the service reads JSON", obj=error.obj, field=error.field) from None


def _as_json(source: Source) -> msgspec.Raw:
    """Return a YAML file as JSON: its only document, or the list of its documents."""
    trees = [tree for tree in parse_yaml(source) if tree is not None]
    return msgspec.Raw(msgspec.json.encode(trees[0] if len(trees) == 1 else trees))


def decompressed(data: bytes, limit: int) -> bytes:
    """Return gzipped data decompressed; refuse data above the limit without decompressing more than the limit."""
    decompressor = zlib.decompressobj(_GZIP)
    try:
        text = decompressor.decompress(data, limit + 1)
    except zlib.error:
        raise InputError("not gzip, though Content-Encoding says so") from None
    if len(text) > limit:
        raise too_large(limit)
    if not decompressor.eof or decompressor.unused_data:
        raise InputError("not one complete gzip stream")
    return text


def _millis(started: float) -> int:
    return round((time.monotonic() - started) * 1000)


def _traceback_text(error: Exception) -> str:
    """Return a traceback without the error's message, which may contain data of a client."""
    return "".join(traceback.format_tb(error.__traceback__)) + type(error).__name__
