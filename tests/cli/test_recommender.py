"""`tutti recommender` as a command: its options, and what is wrong before anything is served."""

from __future__ import annotations

import socket
from pathlib import Path

import pytest


def test_help_names_the_defaults(tutti) -> None:
    run = tutti("recommender", "--help")
    assert run.code == 0
    text = " ".join(run.out.split())
    for word in ("127.0.0.1", "8080", "64Mi", "30s", "one to each core", "TUTTI_TOKEN"):
        assert word in text


@pytest.mark.parametrize(
    ("arguments", "problem"),
    [
        (["--max-body", "lots"], '"lots" is not a size'),
        (["--max-body", "0"], "it must be above 0"),
        (["--grace", "10 s"], "is not a time"),
        (["--timeout", "1d"], "is not a time"),
        (["--workers", "0"], "--workers"),
        (["--port", "70000"], "--port"),
        (["--tls-cert", "c.pem"], "go together"),
        (["--time-limit", "2m"], "--max-time-limit"),
    ],
)
def test_wrong_options_are_usage_errors(tutti, arguments: list[str], problem: str) -> None:
    run = tutti("recommender", *arguments)
    assert run.code == 2
    assert problem in run.err


def test_files_are_read_before_anything_is_served(tutti, tmp_path: Path) -> None:
    bad = tmp_path / "bad.csv"
    bad.write_text("nonsense\n1\n")
    empty = tmp_path / "token"
    empty.write_text(" \n")
    for arguments, problem in [
        (["--prices", str(bad)], str(bad)),
        (["--pools", str(tmp_path / "absent.yaml")], "no such file"),
        (["--pools", str(tmp_path)], "want one file"),
        (["--token-file", str(empty)], "no token in it"),
        (["--token-file", str(tmp_path / "absent")], "no such file"),
    ]:
        run = tutti("recommender", "--port", "0", *arguments)
        assert run.code == 2
        assert run.err.startswith("error: ")
        assert problem in run.err


def test_a_certificate_that_is_none(tutti, tmp_path: Path) -> None:
    (tmp_path / "c.pem").write_text("no certificate")
    run = tutti("recommender", "--port", "0", "--tls-cert", str(tmp_path / "c.pem"), "--tls-key", "absent.pem")
    assert run.code == 2
    assert "cannot be read" in run.err


def test_a_port_that_is_taken(tutti) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        run = tutti("recommender", "--port", str(taken.getsockname()[1]))
    assert run.code == 2
    assert "cannot listen there: address already in use" in run.err
