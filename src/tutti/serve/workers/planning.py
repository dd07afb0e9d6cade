"""From the bytes of a request to the bytes of its answer: all that a worker does.

Contract: `answer` never raises. What the user can mend is a 4xx with its object and field; anything else is a 500 with
the request's id, and the traceback, without values, goes back for the log. The search's limit counts work, with the CPU
time of this process as its clock: a plan is the same whether the machine is idle or busy with others.
"""

from __future__ import annotations

import time
import traceback
import zlib
from typing import Any

import msgspec

from tutti.app.recommend import ask
from tutti.cluster.work_budget import WorkBudget
from tutti.exceptions import InputError, TuttiError
from tutti.kube.objects import Pod
from tutti.kube.reading.sources import Source
from tutti.kube.reading.yaml_text import parse_yaml
from tutti.recommend.build_request import price_book
from tutti.recommend.records.request import Binder, Down, Objective, Options, Request, Weights
from tutti.serve.http.refusals import BAD_REQUEST, INTERNAL, RefusedError, refusal_body, refusal_of, too_large
from tutti.serve.workers.messages import PlanJob, QueryOptions, Reply, Route, WorkerSetup
from tutti.wire.document import are_objects, first_level, plain
from tutti.wire.formats import Format, format_of, read_request, seconds_for
from tutti.wire.gardener.request import read_gardener
from tutti.wire.gardener.response import gardener_answer
from tutti.wire.scaling_advisor.request import read_advisor
from tutti.wire.scaling_advisor.response import advisor_answer
from tutti.wire.tutti_api.build_response import recommendation_answer

_NULL = msgspec.Raw(b"null")
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
        self._pools = None if setup.pools is None else _tree(setup.pools)
        """The server's pools as a body would have them."""

    def warm_up(self) -> None:
        """Make a small plan, so that the first client does not wait for imports and tables."""
        reply, _ = self.answer(PlanJob(id="", route=Route.TUTTI), _WARM_UP)
        if reply.fault:
            raise RuntimeError(reply.fault)

    def answer(self, job: PlanJob, body: bytes) -> tuple[Reply, bytes]:
        """The answer to a job."""
        started = time.monotonic()
        source: Source | None = None
        pods: int | None = None
        fault = ""
        try:
            source = self._opened(job, body)
            request, seconds = self._read(job, source)
            pods = sum(isinstance(each, Pod) for each in request.objects)
            plan = ask(request, WorkBudget.of_seconds(seconds, time.process_time))
            answer: msgspec.Struct
            if job.route is Route.GARDENER:
                answer = gardener_answer(plan, request, millis=_millis(started))
            elif job.route is Route.ADVISOR:
                answer = advisor_answer(plan, request, source=source, millis=_millis(started))
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
        text = refusal_body(job.route, refusal, request_id=job.id, millis=_millis(started), source=source)
        return Reply(status=refusal.status, pods=pods, fault=fault), text

    def _opened(self, job: PlanJob, body: bytes) -> Source:
        """The body as a document."""
        data = unpacked(body, self._setup.max_body) if job.is_gzip else body
        if not data.strip():
            raise InputError("the body is empty")
        if data.startswith(_GZIP_MAGIC):
            raise InputError("not JSON but gzip: the service reads JSON; send Content-Encoding: gzip")
        return plain(Source(_BODY, data))

    def _read(self, job: PlanJob, source: Source) -> tuple[Request, float]:
        """What is asked, and for how many seconds to search."""
        try:
            return self._request(job, source)
        except RecursionError:
            raise InputError("nested too deeply") from None
        except UnicodeError:
            raise InputError("not text in UTF-8") from None
        except InputError as error:
            if not error.problem.startswith(_MALFORMED):
                raise
            raise InputError(f"{error.problem}; the service reads JSON", obj=error.obj, field=error.field) from None

    def _request(self, job: PlanJob, source: Source) -> tuple[Request, float]:
        options = _options(job.options, is_down=job.options.down is True)
        if job.route is Route.GARDENER:
            options = _options(job.options, is_down=job.options.down is not False)
            return read_gardener(source, self._book, options=options), self._seconds(job.options.time_limit)
        form = Format.ADVISOR if job.route is Route.ADVISOR else format_of(source)
        seconds = self._seconds(seconds_for(source, form, asked=self._seconds(job.options.time_limit)))
        if job.route is Route.ADVISOR:
            return read_advisor(source, self._book, options=options), seconds
        pools, region = None, ""
        if form is Format.KUBERNETES:
            names = first_level(source)
            if names is not None and not are_objects(names):
                raise InputError('want a kubectl List, a Gardener snapshot, or {"cluster": ...}')
            pools, region = self._setup.pools, self._setup.region
        elif form is Format.TUTTI:
            source = self._with_defaults(source)
        request = read_request(source, self._book, options=options, pools=pools, region=region)
        return request, seconds

    def _with_defaults(self, source: Source) -> Source:
        """A body of ours with the server's pools and region where it has none; the rest of it is not decoded."""
        defaults = {"pools": self._pools, "region": self._setup.region}
        if not any(defaults.values()):
            return source
        body = msgspec.json.decode(source.data, type=dict[str, msgspec.Raw])
        missing = {name: each for name, each in defaults.items() if each and body.get(name, _NULL) == _NULL}
        return Source(source.name, msgspec.json.encode({**body, **missing})) if missing else source

    def _seconds(self, asked: float | None) -> float:
        if asked is None:
            return self._setup.time_limit
        if not 0 < asked <= self._setup.max_time_limit:
            most = self._setup.max_time_limit
            raise RefusedError(BAD_REQUEST, f"want seconds above 0 and up to {most:g}", field="timeLimit")
        return asked


def _options(asked: QueryOptions, *, is_down: bool) -> Options:
    return Options(
        objective=asked.objective or Objective.COST,
        strategy=asked.strategy,
        binder=asked.binder or Binder.KUBE_SCHEDULER,
        weights=asked.weights or Weights(),
        down=Down() if is_down else None,
    )


def _tree(source: Source) -> Any:
    """A file as one tree: its only document, or the list of them."""
    trees = [tree for tree in parse_yaml(source) if tree is not None]
    return trees[0] if len(trees) == 1 else trees


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
