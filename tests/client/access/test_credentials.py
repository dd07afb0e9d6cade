"""Credentials: tokens that are replaced, programs that give them, certificates on disk."""

from __future__ import annotations

import asyncio
import json
import os
import stat
from pathlib import Path
from typing import Any

import pytest

from tests.support.moved_clock import MovedClock
from tutti.client.access.cluster_access import ClusterAccess, ExecCommand, UserAccess
from tutti.client.access.credentials import Credentials, Identity
from tutti.exceptions import ApiError, InputError

V1 = "client.authentication.k8s.io/v1"
EXPIRES_IN_2000_S = "2027-01-15T08:50:00Z"
"""2,000 seconds after the beginning of a `MovedClock`."""


def credentials(user: UserAccess, clock: MovedClock | None = None, **access: Any) -> Credentials:
    clock = clock or MovedClock()
    where = ClusterAccess(server="https://x", user=user, name="here", **access)
    return Credentials(where, monotonic=clock.monotonic, wall=clock.wall)


def identity(known: Credentials) -> Identity:
    return asyncio.run(known.identity())


def program(folder: Path, answer: str, *, name: str = "get-token") -> ExecCommand:
    """Return a command that counts its runs in a file, and prints an answer with that count for COUNT.

    It fails while the folder has a file `fails`.
    """
    path = folder / name
    runs = folder / "runs"
    path.write_text(
        f'#!/bin/sh\necho run >> {runs}\nn=$(wc -l < {runs})\necho "$KUBERNETES_EXEC_INFO" > {folder}/info\n'
        f"[ ! -e {folder}/fails ] || exit 1\n"
        f"sed \"s/COUNT/$n/\" <<'END'\n{answer}\nEND\n"
    )
    path.chmod(path.stat().st_mode | stat.S_IXUSR)
    return ExecCommand(api_version=V1, command=str(path), provides_cluster_info=True)


def runs(folder: Path) -> int:
    return len((folder / "runs").read_text().splitlines())


def exec_credential(**status: str) -> str:
    return json.dumps({"apiVersion": V1, "kind": "ExecCredential", "status": status})


def test_a_token() -> None:
    assert identity(credentials(UserAccess(token="abc"))).authorization == "Bearer abc"


def test_a_password() -> None:
    assert identity(credentials(UserAccess(username="u", password="p"))).authorization == "Basic dTpw"


def test_a_token_file_is_read_again(tmp_path: Path) -> None:
    file, clock = tmp_path / "token", MovedClock()
    file.write_text("one\n")
    known = credentials(UserAccess(token_file=file, token="older"), clock)
    assert identity(known).authorization == "Bearer one"
    file.write_text("two\n")
    assert identity(known).authorization == "Bearer one"
    clock.seconds += 61
    assert identity(known).authorization == "Bearer two"
    file.unlink()
    clock.seconds += 61
    assert identity(known).authorization == "Bearer two"


def test_a_rejected_token_is_read_at_once(tmp_path: Path) -> None:
    file = tmp_path / "token"
    file.write_text("one")
    known = credentials(UserAccess(token_file=file))
    first = identity(known)
    assert not known.reject(first)
    file.write_text("two")
    assert known.reject(first)
    assert identity(known).authorization == "Bearer two"


def test_a_missing_token_file(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="has no token"):
        identity(credentials(UserAccess(token_file=tmp_path / "none")))


def test_certificate_files_are_read_when_they_change(tmp_path: Path) -> None:
    certificate, key = tmp_path / "c.crt", tmp_path / "c.key"
    certificate.write_text("one")
    key.write_text("key")
    known = credentials(UserAccess(certificate_file=certificate, key_file=key))
    assert identity(known).certificate == b"one"
    certificate.write_text("other")
    os.utime(certificate, ns=(1, 1))
    assert identity(known).certificate == b"other"


def test_a_program_gives_a_token_until_it_expires(tmp_path: Path) -> None:
    clock = MovedClock()
    command = program(tmp_path, exec_credential(token="t-COUNT", expirationTimestamp=EXPIRES_IN_2000_S))
    known = credentials(UserAccess(command=command), clock)
    assert identity(known).authorization == "Bearer t-1"
    assert identity(known).authorization == "Bearer t-1"
    clock.seconds += 2_001
    assert identity(known).authorization == "Bearer t-2"
    info = json.loads((tmp_path / "info").read_text())
    assert info["apiVersion"] == V1
    assert info["spec"] == {"interactive": False, "cluster": {"server": "https://x"}}


def test_a_program_is_asked_again_when_its_token_is_rejected(tmp_path: Path) -> None:
    clock = MovedClock()
    known = credentials(UserAccess(command=program(tmp_path, exec_credential(token="t-COUNT"))), clock)
    first = identity(known)
    clock.seconds += 3
    assert known.reject(first)
    second = identity(known)
    assert second.authorization == "Bearer t-2"
    assert known.reject(first)
    assert not known.reject(second)  # the program has just run
    assert identity(known).authorization == "Bearer t-2"


def test_a_token_is_used_until_it_expires_while_its_program_fails(tmp_path: Path) -> None:
    clock = MovedClock()
    command = program(tmp_path, exec_credential(token="t-COUNT", expirationTimestamp=EXPIRES_IN_2000_S))
    known = credentials(UserAccess(command=command), clock)

    async def scene() -> None:
        async def run_program() -> None:
            assert known._program is not None
            assert known._program._run is not None
            await known._program._run

        assert (await known.identity()).authorization == "Bearer t-1"
        (tmp_path / "fails").touch()
        clock.seconds += 1_995
        for _ in range(3):
            assert (await known.identity()).authorization == "Bearer t-1"
        await run_program()
        assert (await known.identity()).authorization == "Bearer t-1"
        clock.seconds += 4
        assert (await known.identity()).authorization == "Bearer t-1"
        await run_program()
        assert runs(tmp_path) == 3
        clock.seconds += 1
        for _ in range(3):  # expired
            with pytest.raises(ApiError, match=r"no credentials: here: exec .*exit code 1") as caught:
                await known.identity()
            assert caught.value.status == 0
        assert runs(tmp_path) == 3
        clock.seconds += 2
        with pytest.raises(ApiError):
            await known.identity()
        assert runs(tmp_path) == 4
        (tmp_path / "fails").unlink()
        clock.seconds += 2
        assert (await known.identity()).authorization == "Bearer t-5"

    asyncio.run(scene())


def test_a_rejected_token_whose_program_fails(tmp_path: Path) -> None:
    clock = MovedClock()
    known = credentials(UserAccess(command=program(tmp_path, exec_credential(token="t-COUNT"))), clock)
    first = identity(known)
    (tmp_path / "fails").touch()
    clock.seconds += 3
    assert known.reject(first)
    with pytest.raises(ApiError, match="no credentials"):
        identity(known)
    (tmp_path / "fails").unlink()
    clock.seconds += 3
    assert identity(known).authorization == "Bearer t-3"


def test_an_expired_answer_is_used_for_a_moment(tmp_path: Path) -> None:
    """The clock of this machine may be ahead."""
    clock = MovedClock()
    command = program(tmp_path, exec_credential(token="t-COUNT", expirationTimestamp="2027-01-15T08:00:00Z"))
    known = credentials(UserAccess(command=command), clock)
    assert [identity(known).authorization for _ in range(3)] == ["Bearer t-1"] * 3
    clock.seconds += 3
    assert identity(known).authorization == "Bearer t-2"


def test_a_request_that_ends_leaves_the_program_to_others(tmp_path: Path) -> None:
    known = credentials(UserAccess(command=program(tmp_path, exec_credential(token="t-COUNT"))))

    async def scene() -> list[Identity]:
        first = asyncio.create_task(known.identity())
        others = [asyncio.create_task(known.identity()) for _ in range(3)]
        await asyncio.sleep(0)
        first.cancel()
        return await asyncio.gather(*others)

    assert [each.authorization for each in asyncio.run(scene())] == ["Bearer t-1"] * 3
    assert runs(tmp_path) == 1


def test_a_program_gives_a_certificate(tmp_path: Path) -> None:
    answer = exec_credential(clientCertificateData="CERT", clientKeyData="KEY")
    found = identity(credentials(UserAccess(command=program(tmp_path, answer))))
    assert (found.authorization, found.certificate, found.key) == ("", b"CERT", b"KEY")
    assert "KEY" not in repr(found)


@pytest.mark.parametrize(
    ("answer", "problem"),
    [
        ("hello", "did not print an ExecCredential"),
        (json.dumps({"apiVersion": V1, "kind": "Pod"}), "it printed Pod"),
        (exec_credential(), "neither a token nor a certificate"),
        (exec_credential(clientCertificateData="CERT"), "must come together"),
        (exec_credential(token="x").replace("/v1", "/v1beta1"), "not ExecCredential client.authentication.k8s.io/v1"),
    ],
)
def test_bad_answers_of_a_program(tmp_path: Path, answer: str, problem: str) -> None:
    with pytest.raises(InputError, match=problem):
        identity(credentials(UserAccess(command=program(tmp_path, answer))))


def test_a_program_that_fails_or_is_missing(tmp_path: Path) -> None:
    failing = credentials(UserAccess(command=ExecCommand(api_version=V1, command="false")))
    for _ in range(2):
        with pytest.raises(InputError, match="here: exec false: exit code 1"):
            identity(failing)
    missing = ExecCommand(api_version=V1, command=str(tmp_path / "none"), install_hint="install it")
    with pytest.raises(InputError, match="no such file or directory; install it"):
        identity(credentials(UserAccess(command=missing)))
