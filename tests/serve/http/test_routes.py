"""Every route and status, over HTTP."""

from __future__ import annotations

import gzip
import json

import msgspec
import pytest

from tests.serve.conftest import START, Server, case, wait_until
from tests.support.paths import EXAMPLES
from tutti.app.recommend.make_recommendation import make_recommendation
from tutti.cluster.work.work_budget import WorkBudget
from tutti.recommend.records.recommendation import Recommendation
from tutti.recommend.records.request import Request
from tutti.serve.openapi.examples import GARDENER, PLANNER, TUTTI
from tutti.serve.workers import planning
from tutti.serve.workers.messages import PlanJob, QueryOptions, Route, WorkerSetup
from tutti.wire.gardener.response import RecommendationResponse
from tutti.wire.scaling_advisor.response import PlannerResponse
from tutti.wire.tutti_api.response import ApiProblem, RecommendationAnswer

EXAMPLES = EXAMPLES / "recommend"


def gardener_error(text: bytes) -> str:
    answer = msgspec.json.decode(text, type=RecommendationResponse)
    assert answer.recommendation.scale_up == ()
    return answer.error


@pytest.mark.parametrize("name", GARDENER)
@pytest.mark.parametrize("path", ["/recommend", "/recommend/"])
def test_gardener_examples_have_plans(server: Server, name: str, path: str) -> None:
    response = server.post(GARDENER[name], path)
    assert response.status_code == 200
    assert response.headers["content-type"] == "application/json"
    answer = msgspec.json.decode(response.content, type=RecommendationResponse)
    assert answer.error == ""
    assert answer.run_time.endswith(" millis")


def test_the_gardener_example_buys_a_node(server: Server) -> None:
    answer = server.post(GARDENER["one pool"], "/recommend/").json()
    (bought,) = answer["recommendation"]["scaleUp"]
    assert (bought["nodePoolName"], bought["zone"], bought["incrementBy"]) == ("workers", "eu-west-1a", 1)
    assert answer["unscheduledPods"] == []


@pytest.mark.parametrize("name", TUTTI)
def test_our_examples_have_plans(server: Server, name: str) -> None:
    response = server.post(TUTTI[name])
    assert response.status_code == 200, response.text
    answer = msgspec.json.decode(response.content, type=RecommendationAnswer)
    assert answer.counts.placed == answer.counts.pending > 0
    assert answer.cost is not None
    assert answer.cost.per_hour > 0


def test_nodes_that_can_go_are_told_when_asked_for(server: Server) -> None:
    snapshot = json.loads((EXAMPLES / "gardener-snapshot.json").read_text())
    response = server.post(snapshot, params={"down": "true"})
    answer = msgspec.json.decode(response.content, type=RecommendationAnswer)
    assert answer.scale_down is not None
    assert answer.scale_down.counts.stay + answer.scale_down.counts.remove > 0
    theirs = [server.post(snapshot, f"/recommend{query}").json() for query in ("", "?down=true", "?down=false")]
    assert theirs[0]["recommendation"] == theirs[1]["recommendation"]
    assert theirs[2]["recommendation"]["scaleDown"] == []


def test_a_bare_list_takes_its_options_from_the_query(server: Server) -> None:
    response = server.post(TUTTI["cluster and pools"]["cluster"], params={"objective": "nodes"})
    assert response.status_code == 422  # there are pods, and nothing says what can be bought
    answer = server.post(case(), params={"objective": "nodes", "binder": "tutti", "strategy": "least-cost"}).json()
    assert (answer["objective"], answer["binder"], answer["strategy"]) == ("nodes", "tutti", "least-cost")
    assert len(answer["holds"]) == 3


def test_options_of_the_body_come_before_those_of_the_query(server: Server) -> None:
    answer = server.post(TUTTI["cluster and pools"], params={"objective": "nodes", "binder": "tutti"}).json()
    assert (answer["objective"], answer["binder"]) == ("cost", "tutti")


def test_pools_and_prices_of_the_server_are_for_requests_without(start: START, tmp_path) -> None:
    pools = tmp_path / "pools.json"
    pools.write_text(json.dumps({"pools": [{"name": "ours", "instanceType": "x1", "zones": ["z"]}]}))
    prices = tmp_path / "prices.csv"
    prices.write_text("instance_type,usd_hour,cpu,memory\nx1,0.5,8,32Gi\n")
    server = start("--workers", "1", "--pools", str(pools), "--prices", str(prices))
    answer = server.post(TUTTI["cluster and pools"]["cluster"]).json()
    (bought,) = answer["scaleUp"]
    assert (bought["nodePool"], bought["instanceType"], bought["pricePerHour"]) == ("ours", "x1", 0.5)
    for none in ({}, {"pools": None}):
        body = {"cluster": TUTTI["cluster and pools"]["cluster"], **none}
        assert server.post(body).json()["scaleUp"] == [bought]
    own = server.post(TUTTI["cluster and pools"]).json()
    assert own["scaleUp"][0]["nodePool"] == "general"
    assert server.post(case()).status_code == 200  # it has pools of its own


@pytest.mark.parametrize(
    ("query", "field"),
    [
        ("objective=beauty", "objective"),
        ("strategy=", "strategy"),
        ("binder=me", "binder"),
        ("weights=cpu", "weights"),
        ("weights=cpu=1,cpu=2", "weights"),
        ("weights=cpu=0,memory=0,gpu=0", "weights"),
        ("timeLimit=nan", "timeLimit"),
        ("timeLimit=-1", "timeLimit"),
        ("timeLimit=61", "timeLimit"),
        ("timeLimit=1e999", "timeLimit"),
        ("timeLimit=1&timeLimit=2", "timeLimit"),
        ("down=maybe", "down"),
        ("objectve=nodes", "objectve"),
    ],
)
def test_a_wrong_query_is_told_by_its_name(server: Server, query: str, field: str) -> None:
    response = server.post(case(), f"/v1/recommendations?{query}")
    assert response.status_code == 400
    problem = msgspec.json.decode(response.content, type=ApiProblem)
    assert problem.field == field
    assert problem.error
    assert problem.request_id == response.headers["x-request-id"]
    response = server.post(case(), f"/recommend?{query}")
    assert response.status_code == 400
    assert gardener_error(response.content).startswith(f"{field}: ")


def test_a_time_limit_of_the_body_is_held_to_the_most(server: Server) -> None:
    body = {**TUTTI["cluster and pools"], "options": {"timeLimit": 600}}
    response = server.post(body)
    assert (response.status_code, response.json()["field"]) == (400, "timeLimit")


def test_a_region_without_prices_is_refused(server: Server) -> None:
    response = server.post({**TUTTI["cluster and pools"], "region": "mars"})
    problem = msgspec.json.decode(response.content, type=ApiProblem)
    assert (response.status_code, problem.field) == (400, "region")
    assert 'no price is known in region "mars"' in problem.error


def test_what_is_wrong_with_an_object_is_told_by_object_and_field(server: Server) -> None:
    body = json.loads(json.dumps(TUTTI["cluster and pools"]))
    body["cluster"]["items"][1]["spec"]["containers"][0]["resources"]["requests"]["cpu"] = "many"
    refusal = server.post(body)
    assert refusal.status_code == 400
    assert refusal.json()["object"].endswith("pod shop/web-1")
    assert "cpu" in refusal.json()["field"]
    snapshot = json.loads(json.dumps(GARDENER["one pool"]))
    snapshot["WorkerPools"][0]["Maximum"] = "three"
    response = server.post(snapshot, "/recommend/")
    assert response.status_code == 400
    assert "WorkerPools[0].Maximum" in gardener_error(response.content)


def test_a_pool_that_cannot_be_is_unprocessable(server: Server) -> None:
    body = {**TUTTI["cluster and pools"], "pools": {"pools": []}}
    assert server.post(body).status_code in (400, 422)
    del body["pools"]
    response = server.post(body)
    assert response.status_code == 422
    assert "nothing can be bought" in response.json()["error"]


def test_no_such_route_and_no_such_method(server: Server) -> None:
    response = server.client.get("/nowhere")
    assert response.status_code == 404
    assert msgspec.json.decode(response.content, type=ApiProblem).error
    response = server.client.put("/recommend/", json={})
    assert response.status_code == 405
    assert response.headers["allow"] == "OPTIONS, POST"
    assert gardener_error(response.content)
    response = server.client.post("/healthz")
    assert (response.status_code, response.headers["allow"]) == (405, "GET, HEAD, OPTIONS")
    assert server.client.get("/").status_code == 404


def test_content_type_is_not_looked_at(server: Server) -> None:
    body = json.dumps(case()).encode()
    for kind in ("application/x-www-form-urlencoded", "text/plain", "application/yaml", ""):
        assert server.post(body, headers={"Content-Type": kind}).status_code == 200
    assert server.post(body, headers={"Content-Type": "multipart/form-data"}).status_code == 200


def test_gzip_is_unpacked_and_other_encodings_are_refused(server: Server) -> None:
    body = json.dumps(case()).encode()
    packed = server.post(gzip.compress(body), headers={"Content-Encoding": "gzip"})
    assert packed.status_code == 200
    assert packed.json() == server.post(body).json()
    for encoding in ("br", "deflate", "gzip, gzip"):
        response = server.post(body, headers={"Content-Encoding": encoding})
        assert response.status_code == 415
        assert response.json()["field"] == "Content-Encoding"


def test_health_readiness_and_metrics(server: Server) -> None:
    assert server.client.get("/healthz").text == "ok\n"
    assert server.client.get("/readyz").text == "ok\n"
    before = server.metric("tutti_http_request_body_bytes_total")
    server.post(b"[]")
    assert server.metric("tutti_http_request_body_bytes_total") == before + 2
    response = server.client.get("/metrics")
    assert response.headers["content-type"] == "text/plain; version=0.0.4; charset=utf-8"
    assert 'route="/v1/recommendations",method="POST",code="400"' in response.text
    assert server.metric("tutti_workers_ready") == 2
    assert server.metric("tutti_plans_running") == server.metric("tutti_plans_waiting") == 0
    assert server.metric("process_resident_memory_bytes") > 10_000_000
    assert server.metric("tutti_worker_resident_memory_bytes") > 50_000_000


@pytest.mark.parametrize("path", ["/healthz", "/readyz"])
def test_probes_answer_head_like_get(server: Server, path: str) -> None:
    got, head = server.client.get(path), server.client.head(path)
    assert (head.status_code, head.content) == (200, b"")
    for name in ("content-type", "content-length"):
        assert head.headers[name] == got.headers[name]
    operations = server.client.get("/openapi.json").json()["paths"][path]
    assert set(operations) == {"get", "head"}
    assert all("content" not in response for response in operations["head"]["responses"].values())


def test_what_is_not_json_is_told_what_is_wanted(server: Server) -> None:
    yaml = server.post(b"kind: List\nitems: []\n")
    packed = server.post(gzip.compress(json.dumps(case()).encode()))
    bare = server.post({})
    assert [each.status_code for each in (yaml, packed, bare)] == [400] * 3
    assert yaml.json()["error"] == "JSON is malformed: invalid character (line 1); the service reads JSON"
    assert packed.json()["error"] == "not JSON but gzip: the service reads JSON; send Content-Encoding: gzip"
    assert bare.json()["error"] == 'want a kubectl List, a Gardener snapshot, or {"cluster": ...}'
    assert "; the service reads JSON" in gardener_error(server.post(b"Pods: []", "/recommend").content)


def test_every_request_has_a_line_in_the_log_and_none_has_its_body(server: Server) -> None:
    body = case()
    body["pods"][0]["namePrefix"] = "secret-name-"
    response = server.post(body, "/v1/recommendations?objective=nodes", headers={"X-Request-Id": "my-own.id_1"})
    assert response.headers["x-request-id"] == "my-own.id_1"
    wait_until(lambda: "id my-own.id_1" in server.log)
    (line,) = [line for line in server.lines if "my-own.id_1" in line]
    assert "POST /v1/recommendations 200 " in line
    assert "pods 3" in line
    assert "secret-name" not in server.log
    other = server.post(case(), headers={"X-Request-Id": "two words"})
    assert other.headers["x-request-id"] != "two words"


# Plans, as scaling-advisor asks for them ------------------------------------------------------------------------------


def planned(text: bytes) -> PlannerResponse:
    return msgspec.json.decode(text, type=PlannerResponse)


@pytest.mark.parametrize("name", PLANNER)
@pytest.mark.parametrize("path", ["/v1/plans", "/v1/plans/"])
def test_planner_requests_have_plans(server: Server, name: str, path: str) -> None:
    response = server.post(PLANNER[name], path)
    assert response.status_code == 200, response.text
    answer = planned(response.content)
    assert (answer.error, answer.request_ref.id) == ("", PLANNER[name]["id"])
    assert answer.scale_out_plan is not None
    assert answer.scale_out_plan.unsatisfied_pod_names == ()


def test_a_plan_names_templates_and_counts(server: Server) -> None:
    answer = planned(server.post(PLANNER["one pool"], "/v1/plans").content)
    assert answer.scale_out_plan is not None
    (bought,) = answer.scale_out_plan.items
    assert (bought.pool_name, bought.template_name, bought.current_replicas, bought.delta) == ("workers", "m5l", 0, 2)
    assert answer.labels["sa.gardener.cloud/request-id"] == "plan-1"


def test_a_plan_says_what_can_go_if_it_is_asked(server: Server) -> None:
    size = {"cpu": "1920m", "memory": "7Gi", "pods": "110"}
    labels = {"sa.gardener.cloud/node-pool-name": "workers", "sa.gardener.cloud/node-template-name": "m5l"}
    node = {"name": "n1", "instanceType": "m5.large", "labels": labels, "capacity": size, "allocatable": size}
    pod = {**PLANNER["one pool"]["snapshot"]["pods"][0], "nodeName": "n2"}
    body = {**PLANNER["one pool"], "snapshot": {"nodes": [node, {**node, "name": "n2"}], "pods": [pod]}}
    assert planned(server.post(body, "/v1/plans").content).scale_in_plan is None
    plan = planned(server.post(body, "/v1/plans?down=true").content).scale_in_plan
    assert plan is not None
    assert [(each.pool_name, each.template_name, each.node_name) for each in plan.items] == [("workers", "m5l", "n1")]


def test_a_planner_request_that_is_refused_is_told_in_its_own_words(server: Server) -> None:
    body = json.loads(json.dumps(PLANNER["one pool"]))
    body["constraint"]["spec"]["nodePools"][0]["min"] = "many"
    response = server.post(body, "/v1/plans")
    answer = planned(response.content)
    assert (response.status_code, answer.request_ref.id, answer.scale_out_plan) == (400, "", None)
    assert answer.error == "constraint.spec.nodePools[0].min: want an integer, not text"
    body = {**PLANNER["one pool"], "simulatorStrategy": "fast"}
    answer = planned(server.post(body, "/v1/plans").content)
    assert (answer.request_ref.id, answer.request_ref.correlation_id) == ("plan-1", "shop")
    assert answer.error.startswith('simulatorStrategy: "fast" is not a strategy')
    body = json.loads(json.dumps(PLANNER["one pool"]))
    body["constraint"]["spec"]["nodePools"][0]["nodeTemplates"] = []
    assert server.post(body, "/v1/plans").status_code == 422
    for bad in (b"", b"[]", b"{", b"null", GARDENER["one pool"], b'{"constraint": ' * 5000):
        response = server.post(bad, "/v1/plans")
        assert (response.status_code, bool(planned(response.content).error)) == (400, True)
    assert planned(server.post(PLANNER["one pool"], "/v1/plans?down=maybe").content).error.startswith("down: ")
    response = server.client.put("/v1/plans", json={})
    assert (response.status_code, bool(planned(response.content).error)) == (405, True)


@pytest.mark.parametrize("route", [Route.ADVISOR, Route.TUTTI])
@pytest.mark.parametrize(("nanos", "time_limit", "seconds"), [(10**9, 30.0, 1.0), (10**9, 0.5, 0.5), (0, None, 5.0)])
def test_a_planner_request_has_a_say_in_the_time(
    monkeypatch: pytest.MonkeyPatch, route: Route, nanos: int, time_limit: float | None, seconds: float
) -> None:
    given: list[float] = []

    def noted(request: Request, budget: WorkBudget) -> Recommendation:
        given.append(budget.seconds)
        return make_recommendation(request, budget)

    monkeypatch.setattr(planning, "make_recommendation", noted)
    planner = planning.Planner(WorkerSetup(max_body=10**6, time_limit=5.0, max_time_limit=60.0))
    body = json.dumps({**PLANNER["one pool"], "AdviceGenerationTimeout": nanos}).encode()
    reply, _ = planner.answer(PlanJob(id="x", route=route, options=QueryOptions(time_limit=time_limit)), body)
    assert (reply.status, given) == (200, [seconds])


@pytest.mark.parametrize("path", ["/recommend", "/v1/recommendations", "/v1/plans"])
def test_a_byte_order_mark_is_nothing(server: Server, path: str) -> None:
    body = PLANNER["one pool"] if path == "/v1/plans" else GARDENER["one pool"]
    response = server.post(b"\xef\xbb\xbf" + json.dumps(body).encode(), path)
    assert response.status_code == 200, response.text
