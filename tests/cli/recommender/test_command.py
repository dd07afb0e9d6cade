"""`tutti recommender` as a command: its options, and what is wrong before anything is served."""

from __future__ import annotations

import socket
import subprocess
from pathlib import Path

import pytest


def test_help_names_the_defaults(tutti) -> None:
    run = tutti("recommender", "--help")
    assert run.code == 0
    text = " ".join(run.out.split())
    for word in ("127.0.0.1", "8080", "64Mi", "30s", "one per core", "TUTTI_TOKEN"):
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
        (["--region", "mars"], '--region: no price is known in region "mars"'),
        (["--token-file", str(empty)], "the file has no token"),
        (["--token-file", str(tmp_path / "absent")], "no such file"),
    ]:
        run = tutti("recommender", "--port", "0", *arguments)
        assert run.code == 2
        assert run.err.startswith("error: ")
        assert problem in run.err


def test_a_certificate_that_is_none(tutti, tmp_path: Path) -> None:
    (tmp_path / "c.pem").write_text("no certificate")
    run = tutti("recommender", "--port", "0", "--tls-cert", str(tmp_path / "c.pem"), "--tls-key", "absent.pem")
    assert (run.code, run.err) == (2, "error: absent.pem: cannot be read: no such file or directory\n")


@pytest.fixture(scope="module")
def pems(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two pairs of a certificate and a key, and files that are neither."""
    folder = tmp_path_factory.mktemp("pems")
    for name in ("", "2"):
        subprocess.run(
            ["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes",
             "-days", "2", "-subj", "/CN=x", "-keyout", f"{folder}/key{name}", "-out", f"{folder}/cert{name}"],
            check=True,
            capture_output=True,
        )  # fmt: skip
    (folder / "text").write_text("neither")
    for kind in ("CERTIFICATE", "PRIVATE KEY"):
        (folder / f"broken-{kind[:4]}").write_text(f"-----BEGIN {kind}-----\nAAAA\n-----END {kind}-----\n")
    return folder


@pytest.mark.parametrize(
    ("cert", "key", "line"),
    [
        ("key", "cert", "key: not a certificate (PEM), but a private key: are --tls-cert and --tls-key swapped?"),
        ("text", "key", "text: not a certificate (PEM)"),
        ("key", "key", "key: not a certificate (PEM)"),
        ("cert", "cert", "cert: not a private key (PEM)"),
        ("cert", "text", "text: not a private key (PEM)"),
        ("cert", "key2", "key2: not the private key of the certificate in {folder}/cert"),
        ("broken-CERT", "key", "broken-CERT: not a valid certificate (PEM)"),
        ("cert", "broken-PRIV", "broken-PRIV: not a valid private key (PEM)"),
    ],
)
def test_the_wrong_file_of_the_two_is_named(tutti, pems: Path, cert: str, key: str, line: str) -> None:
    run = tutti("recommender", "--port", "0", "--tls-cert", str(pems / cert), "--tls-key", str(pems / key))
    assert (run.code, run.err) == (2, f"error: {pems}/{line.format(folder=pems)}\n")


def test_a_port_that_is_taken(tutti) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        run = tutti("recommender", "--port", str(port))
    line = f"error: cannot listen on 127.0.0.1:{port}: address already in use; choose another --port\n"
    assert (run.code, run.err) == (2, line)


@pytest.mark.parametrize("host", ["192.0.2.1", "no..name", "name.invalid"])
def test_a_host_that_is_not_this_machine(tutti, host: str) -> None:
    run = tutti("recommender", "--host", host, "--port", "1")
    line = f"error: cannot listen on {host}:1: it is not an address of this machine; choose another --host\n"
    assert (run.code, run.err) == (2, line)
