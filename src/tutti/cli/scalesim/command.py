"""`tutti scalesim`: a scaling simulation from a Gardener snapshot, round by round, with a recommender over HTTP.

Contract: buys and changes nothing: the simulation runs on a copy of the snapshot. The recommender is the server at
--url, or else a Tutti server that the command starts on a free port for this run. Pods that stay pending are not an
error: the exit code is 0 unless --fail-unschedulable is given.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import click

from tutti.cli import options
from tutti.cli.printing import print_data, print_text

if TYPE_CHECKING:
    from tutti.kube.reading.sources import Source
    from tutti.wire.wire_document import WireDocument

_FILE = click.Path(allow_dash=True)


@click.command("scalesim")
@click.option(
    "-f", "--filename", "path", required=True, type=_FILE, metavar="SNAPSHOT",
    help="A Gardener ClusterSnapshot (JSON, also gzipped), or - for standard input.",
)  # fmt: skip
@click.option("--url", metavar="URL", help="A running recommender; without it the command starts one for this run.")
@click.option("--token-file", type=click.Path(), metavar="FILE", help="The recommender's token; else TUTTI_TOKEN.")
@click.option("--prices", type=_FILE, metavar="FILE", help="Prices as CSV; they come before the packaged ones of EC2.")
@click.option(
    "--rounds",
    type=click.IntRange(1, 1000),
    default=10,
    show_default=True,
    metavar="N",
    help="Largest number of rounds.",
)
@click.option(
    "--timeout", type=click.FloatRange(0, min_open=True), default=600.0, show_default=True, metavar="SECONDS",
    help="How long to wait for an answer.",
)  # fmt: skip
@options.output("table", "json", "yaml")
@click.option("--fail-unschedulable", is_flag=True, help="Exit with 1 if a pod stays pending.")
def command(
    path: str,
    url: str | None,
    token_file: str | None,
    prices: str | None,
    rounds: int,
    timeout: float,
    form: str,
    fail_unschedulable: bool,
) -> None:
    """Play a scaling simulation from a Gardener snapshot, round by round.

    Builds the virtual cluster of the snapshot, schedules the pods that fit, posts the snapshot to a recommender,
    lets the nodes of the answer join, schedules again, and asks again, until no pod waits or nothing more is bought.

    \b
    tutti scalesim -f snapshot.json
    tutti scalesim -f snapshot.json --url http://127.0.0.1:8080 --rounds 3 -o json
    """
    from tutti.app.simulate_scaling import simulate_scaling
    from tutti.cli.loading import print_note, spinner
    from tutti.cli.recommend.inputs import one_source
    from tutti.cli.scalesim.client import ask_recommender
    from tutti.recommend.build_request import price_book
    from tutti.wire.gardener.request import parse_gardener, read_gardener

    if [path, prices].count("-") > 1:
        raise click.UsageError("only one of -f and --prices can be - (standard input).")
    token = _token(token_file)
    source, table = one_source(path), one_source(prices) if prices is not None else None
    document = _gardener_document(source)
    with spinner("reading"):
        request = read_gardener(parse_gardener(document), price_book(table), file=source.name)
    for note in (*request.notes, *request.catalogue.notes):
        print_note(note)
    with (
        _running_recommender(url, table, token=token) as (address, bearer_token),
        spinner("asking the recommender") as tell,
    ):
        result = simulate_scaling(
            source,
            request,
            partial(ask_recommender, address, timeout=timeout, token=bearer_token),
            rounds=rounds,
            tell=lambda number: tell(f"round {number}"),
        )
    if form == "table":
        print_text(result.text())
    else:
        print_data(result.data(), form)
    if fail_unschedulable and result.simulation.unschedulable:
        raise click.exceptions.Exit(1)


def _gardener_document(source: Source) -> WireDocument:
    """Return the document; refuse well-formed documents of other formats."""
    from tutti.exceptions import InputError
    from tutti.wire.request_formats import identify
    from tutti.wire.wire_document import WireFormat

    if not source.data.strip():
        raise InputError("it is empty", file=source.name)
    document = identify(source)
    form = document.format
    if form is not WireFormat.GARDENER and not (form is WireFormat.KUBERNETES and _is_malformed(source)):
        problem = f"want a Gardener ClusterSnapshot (AutoscalerConfig, WorkerPools, Pods, Nodes), not the {form} format"
        raise InputError(problem, file=source.name)
    return document


def _is_malformed(source: Source) -> bool:
    """Return whether a document is malformed JSON; then the reader reports where."""
    import msgspec

    if source.data.lstrip()[:1] != b"{":
        return False
    try:
        msgspec.json.decode(source.data)
    except msgspec.DecodeError:
        return True
    return False


def _token(path: str | None) -> str:
    """Return the token for the recommender, from a file or from the environment."""
    from tutti.exceptions import InputError

    if path is None:
        return os.environ.get("TUTTI_TOKEN", "").strip()
    try:
        text = Path(path).read_text("utf-8").strip()
    except (OSError, UnicodeDecodeError) as error:
        raise InputError((getattr(error, "strerror", None) or "not UTF-8 text").lower(), file=path) from None
    if not text or not text.isprintable() or not text.isascii():
        raise InputError("want one line with a token", file=path)
    return text


@contextmanager
def _running_recommender(url: str | None, prices: Source | None, *, token: str) -> Iterator[tuple[str, str]]:
    """Yield the endpoint of the recommender, and the token for it."""
    from tutti.cli.scalesim.client import endpoint

    if url is not None:
        yield endpoint(url), token
        return
    from tutti.serve.background_server import running_server
    from tutti.serve.settings import ServerSettings

    with running_server(ServerSettings(workers=1, prices=prices)) as address:
        yield endpoint(address), ""
