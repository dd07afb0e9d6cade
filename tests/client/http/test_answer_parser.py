"""Answers of HTTP/1.1, whatever the pieces in which they come."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tutti.client.http.answer_parser import AnswerParser, HttpAnswer

PLAIN = b'HTTP/1.1 201 Created\r\nContent-Length: 17\r\nDate: Wed, 18 Nov 2026 20:00:00 GMT\r\n\r\n{"kind":"Status"}'
CHUNKED = (
    b"HTTP/1.1 409 Conflict\r\nTransfer-Encoding: chunked\r\n\r\n"
    b'7;extension=1\r\n{"kind"\r\nA\r\n:"Status"}\r\n0\r\nTrailer: yes\r\n\r\n'
)
INFORMED = b"HTTP/1.1 103 Early Hints\r\nLink: x\r\n\r\n" + PLAIN


def parse(*pieces: bytes) -> HttpAnswer | None:
    parser, answer = AnswerParser(), None
    for piece in pieces:
        assert answer is None, "the answer was complete before its last byte"
        answer = parser.feed(piece)
    return answer


@given(st.sampled_from([PLAIN, CHUNKED, INFORMED]), st.data())
def test_the_pieces_of_an_answer_do_not_matter(answer: bytes, data: st.DataObject) -> None:
    cuts = sorted(data.draw(st.sets(st.integers(1, len(answer) - 1), max_size=8)))
    pieces = [answer[start:end] for start, end in zip([0, *cuts], [*cuts, len(answer)], strict=True)]
    found = parse(*pieces)
    assert found is not None
    assert found == parse(answer)
    assert found.body == b'{"kind":"Status"}'
    assert found.status == (409 if answer is CHUNKED else 201)
    assert found.keeps_alive


def test_a_parser_reads_one_answer_after_the_other() -> None:
    parser = AnswerParser()
    assert [getattr(parser.feed(each), "status", None) for each in (PLAIN, CHUNKED, PLAIN)] == [201, 409, 201]


def test_headers_are_named_in_lower_case() -> None:
    answer = parse(PLAIN)
    assert answer is not None
    assert answer.headers[b"date"] == b"Wed, 18 Nov 2026 20:00:00 GMT"


@pytest.mark.parametrize(
    ("head", "keeps"),
    [
        (b"HTTP/1.1 200 OK\r\nConnection: close\r\n", False),
        (b"HTTP/1.0 200 OK\r\n", False),
        (b"HTTP/1.1 200\r\n", True),
    ],
)
def test_whether_another_request_may_follow(head: bytes, keeps: bool) -> None:
    answer = parse(head + b"Content-Length: 0\r\n\r\n")
    assert answer is not None
    assert answer.keeps_alive is keeps


def test_a_body_without_a_length_ends_with_the_connection() -> None:
    parser = AnswerParser()
    assert parser.feed(b"HTTP/1.1 200 OK\r\n\r\nsome") is None
    assert parser.feed(b"thing") is None
    answer = parser.end()
    assert answer is not None
    assert (answer.body, answer.keeps_alive) == (b"something", False)


def test_an_error_is_known_by_its_status_if_its_body_is_cut_off() -> None:
    for whole in (CHUNKED, PLAIN.replace(b"201 Created", b"409 Conflict")):
        parser = AnswerParser()
        assert parser.feed(whole[:-10]) is None
        answer = parser.end()
        assert answer is not None
        assert (answer.status, answer.keeps_alive) == (409, False)
    parser = AnswerParser()
    assert parser.feed(PLAIN[:-1]) is None
    assert parser.end() is None


def test_an_answer_without_a_body() -> None:
    answer = parse(b"HTTP/1.1 204 No Content\r\nContent-Length: 5\r\n\r\n")
    assert answer is not None
    assert answer.body == b""


@pytest.mark.parametrize(
    "data",
    [
        b"SSH-2.0-OpenSSH\r\n\r\n",
        b"HTTP/2 200\r\n\r\n",
        b"HTTP/1.1 abc OK\r\n\r\n",
        b"HTTP/1.1 2000 OK\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nno colon\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nname : value\r\n\r\n",
        b"HTTP/1.1 200 OK\r\n folded: value\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nContent-Length: -1\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nContent-Length: 99999999999\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: gzip, chunked\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nxyz\r\n",
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nfffffffff\r\n",
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n1\r\nab\r\n",
        b"HTTP/1.1 200 OK\r\nContent-Length: 1\r\n\r\nab",
        b"HTTP/1.1 200 OK\r\nX: " + b"x" * 70_000,
    ],
)
def test_bytes_that_are_no_answer(data: bytes) -> None:
    with pytest.raises(ConnectionError):
        parse(data)


@given(st.binary(max_size=200))
def test_any_bytes_are_an_answer_an_error_or_incomplete(data: bytes) -> None:
    for prefix in (b"", b"HTTP/1.1 200 OK\r\n", b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"):
        try:
            parse(prefix + data)
        except ConnectionError:
            continue
