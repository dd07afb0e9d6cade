"""The OpenAPI document, and schemathesis on it for some seconds; benchmarks/service.py takes minutes."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import jsonschema_rs
import pytest

from tests.serve.conftest import Server
from tests.support.paths import EXAMPLES
from tutti.serve.openapi.examples import GARDENER, PLANNER, TUTTI

CONFIG = """
# A body that has the right shape may still say nonsense.
[checks.positive_data_acceptance]
expected-statuses = ["2xx", "400", "422"]
"""


def test_the_document_says_what_there_is(server: Server) -> None:
    document = server.client.get("/openapi.json").json()
    assert document["openapi"].startswith("3.1")
    posts, gets = {"/recommend", "/v1/recommendations", "/v1/plans"}, {"/healthz", "/readyz", "/metrics"}
    assert set(document["paths"]) == posts | gets
    for path in posts:
        operation = document["paths"][path]["post"]
        body = operation["requestBody"]["content"]["application/json"]
        assert len(body["examples"]) >= 2
        assert {"200", "400", "401", "408", "413", "415", "422", "500", "503", "504"} <= set(operation["responses"])
        assert [each["name"] for each in operation["parameters"]] == [
            "objective", "strategy", "binder", "weights", "timeLimit", "down",
        ]  # fmt: skip
    assert document["components"]["schemas"]["Body"]["required"] == ["cluster"]


def snapshot() -> dict[str, Any]:
    return json.loads((EXAMPLES / "recommend" / "gardener-snapshot.json").read_bytes())


@pytest.mark.parametrize(
    ("path", "bodies"),
    [
        ("/recommend", [*GARDENER.values(), snapshot(), {"Pods": 3}, {}]),
        ("/v1/recommendations", [*TUTTI.values(), snapshot(), {"cluster": 3}, {"cluster": []}]),
        ("/v1/plans", [*PLANNER.values(), {"id": "a", "constraint": 3}, {"constraint": {"spec": {}}}]),
    ],
)
@pytest.mark.parametrize("query", ["", "?down=true", "?down=true&objective=nodes&binder=tutti", "?down=maybe"])
def test_answers_have_the_schemas_of_the_document(server: Server, path: str, bodies: list[Any], query: str) -> None:
    document = server.client.get("/openapi.json").json()
    responses = document["paths"][path]["post"]["responses"]
    for body in bodies:
        answer = server.post(body, path + query)
        schema = responses[str(answer.status_code)]["content"]["application/json"]["schema"]
        jsonschema_rs.validate({**schema, "components": document["components"]}, answer.json())


@pytest.mark.parametrize("phases", ["examples,fuzzing"])
def test_schemathesis_finds_nothing(server: Server, tmp_path: Path, phases: str) -> None:
    (tmp_path / "schemathesis.toml").write_text(CONFIG)
    program = Path(sys.executable).parent / "schemathesis"
    done = subprocess.run(
        [program, "--config-file", tmp_path / "schemathesis.toml", "run", f"{server.url}/openapi.json",
         "--phases", phases, "--max-examples", "15", "--seed", "1", "--no-color", "--request-timeout", "120",
         "--suppress-health-check", "all"],
        cwd=tmp_path, capture_output=True, text=True, check=False, timeout=900,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout[-5000:]
    assert "Traceback" not in server.log
