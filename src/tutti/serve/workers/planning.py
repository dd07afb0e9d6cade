"""From the bytes of a request to the bytes of its answer: all that a worker does.

Contract: `answer` never raises. What the user can mend is a 4xx with its object and field; anything else is a 500 with
the request's id, and the traceback, without values, goes back for the log. The search's limit counts work, with the CPU
time of this process as its clock: a plan is the same whether the machine is idle or busy with others.
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
from tutti.serve.http.refusals import BAD_REQUEST, INTERNAL, RefusedError, refusal_body, refusal_of, too_large
from tutti.serve.workers.messages import PlanJob, QueryOptions, Reply, Route, WorkerSetup
from tutti.wire.document import WireFormat, has_kubernetes_fields
from tutti.wire.formats import ParsedRequest, identify, parse_request
from tutti.wire.gardener.response import gardener_answer
from tutti.wire.scaling_advisor.response import advisor_answer
from tutti.wire.scaling_advisor.text import PlannerText, reference_of
from tutti.wire.tutti_api.build_response import recommendation_answer
from tutti.wire.tutti_api.request import UndecodedBody

_FORMATS = {Route.GARDENER: WireFormat.GARDENER, Route.ADVISOR: WireFormat.ADVISOR}
"""Routes whose bodies have one format."""
_GZIP = 16 + zlib.MAX_WBITS
_GZIP_MAGIC = b"\x1f\x8b"
_MALFORMED = "JSON is malformed"
"""So begins what decoders say of text that is not JSON."""
_BODY = "body.json"
"""The name promises JSON, so that YAML is not tried; it is not told to anybody."""
_WARM_UP = (
    b'{"nodePools": [{"name": "p", "zones": ["eu-west-1a"], "max": 2, "current": 0, "instanceType": "m5.large"}],'
    b' "pods": [{"namePrefix": "a", "requests": {"cpu": "1", "memory": "1Gi"}, "count": 3}]}'
)


class Planner:
    """See the module's contract."""

    def __init__(self, setup: WorkerSetup) -> None:
        self._setup = setup
        self._book = price_book(setup.prices)
        self._pools = None if setup.pools is None else _as_json(setup.pools)
        """The server's pools as a body would have them."""

    def warm_up(self) -> None:
        """Make a small plan, so that the first client does not wait for imports and tables."""
        reply, _ = self.answer(PlanJob(id="", route=Route.TUTTI), _WARM_UP)
        if reply.fault:
            raise RuntimeError(reply.fault)

    def answer(self, job: PlanJob, body: bytes) -> tuple[Reply, bytes]:
        """The answer to a job."""
        started = time.monotonic()
        planner: PlannerText | None = None
        pods: int | None = None
        fault = ""
        try:
            with _reading():
                parsed = parse_request(identify(self._opened(job, body), _FORMATS.get(job.route)))
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
        except Exception as error:  # a fault of Tutti's: it is the server's log that tells
            fault = _account(error)
            refusal = RefusedError(INTERNAL, f"a fault of Tutti's own; the server's log has it as {job.id}")
        text = refusal_body(job.route, refusal, request_id=job.id, millis=_millis(started), planner=planner)
        return Reply(status=refusal.status, pods=pods, fault=fault), text

    def _opened(self, job: PlanJob, body: bytes) -> Source:
        """The body as a document."""
        data = unpacked(body, self._setup.max_body) if job.is_gzip else body
        if not data.strip():
            raise InputError("the body is empty")
        if data.startswith(_GZIP_MAGIC):
            raise InputError("not JSON but gzip: the service reads JSON; send Content-Encoding: gzip")
        return Source(_BODY, data)

    def _read(self, job: PlanJob, parsed: ParsedRequest) -> tuple[Request, float]:
        """The request of a decoded body, and for how many seconds to search."""
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

    def _seconds(self, asked: float | None) -> float:
        if asked is None:
            return self._setup.time_limit
        if not 0 < asked <= self._setup.max_time_limit:
            most = self._setup.max_time_limit
            raise RefusedError(BAD_REQUEST, f"want seconds above 0 and up to {most:g}", field="timeLimit")
        return asked


def _options(query: QueryOptions, *, is_down: bool) -> RecommendOptions:
    return RecommendOptions(
        objective=query.objective or Objective.COST,
        strategy=query.strategy,
        binder=query.binder or Binder.KUBE_SCHEDULER,
        weights=query.weights or ResourceWeights(),
        down=DownOptions() if is_down else None,
    )


@contextmanager
def _reading() -> Iterator[None]:
    """Put faults of a body's text into the words of the service."""
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
    """A YAML file as JSON: its only document, or the list of its documents."""
    trees = [tree for tree in parse_yaml(source) if tree is not None]
    return msgspec.Raw(msgspec.json.encode(trees[0] if len(trees) == 1 else trees))


def unpacked(data: bytes, limit: int) -> bytes:
    """What was packed with gzip, unless it is more than the limit: then no more than that is unpacked."""
    opened = zlib.decompressobj(_GZIP)
    try:
        text = opened.decompress(data, limit + 1)
    except zlib.error:
        raise InputError("not gzip, though Content-Encoding says so") from None
    if len(text) > limit:
        raise too_large(limit)
    if not opened.eof or opened.unused_data:
        raise InputError("not one whole gzip stream")
    return text


def _millis(started: float) -> int:
    return round((time.monotonic() - started) * 1000)


def _account(error: Exception) -> str:
    """A traceback without the error's own words, which may be a client's."""
    return "".join(traceback.format_tb(error.__traceback__)) + type(error).__name__
