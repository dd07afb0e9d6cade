"""`tutti recommender`: the recommender as an HTTP service.

Contract: the first line on standard error is the address; one line for each request follows. After SIGTERM the command
answers running requests and exits with 0, after Ctrl-C with 130. It reads all files before it serves requests.
"""

from __future__ import annotations

import contextlib
import math
import os
import re
import signal
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import click

if TYPE_CHECKING:
    from tutti.kube.reading.sources import Source
    from tutti.serve.settings import ServerSettings

_FILE = click.Path(allow_dash=False)
_INTERRUPTED = 130
_TOKEN = "TUTTI_TOKEN"
_SIZES = {"": 1, "k": 10**3, "M": 10**6, "G": 10**9, "Ki": 2**10, "Mi": 2**20, "Gi": 2**30}
_TIMES = {"": 1.0, "ms": 0.001, "s": 1.0, "m": 60.0, "h": 3600.0}


class _Measure(click.ParamType[float]):
    """A number with a unit, as in Kubernetes and Go; numbers without a unit are bytes or seconds."""

    def __init__(self, name: str, units: dict[str, float] | dict[str, int]) -> None:
        self.name, self._units = name, units

    def convert(self, value: object, param: click.Parameter | None, ctx: click.Context | None) -> float:
        """Return the number in bytes or seconds."""
        parts = re.fullmatch(r"(\d+(?:\.\d+)?)([A-Za-z]*)", str(value))
        if parts is None or parts[2] not in self._units:
            units = ", ".join(filter(None, self._units))
            self.fail(f'"{value}" is not a {self.name} (want a number, or one with {units}).', param, ctx)
        number = float(parts[1]) * self._units[parts[2]]
        if not (math.isfinite(number) and number > 0):
            self.fail("it must be above 0.", param, ctx)
        return number


_SIZE, _TIME = _Measure("size", _SIZES), _Measure("time", _TIMES)


@click.command("recommender")
@click.option("--host", default="127.0.0.1", show_default=True, metavar="ADDRESS", help="Address to listen on.")
@click.option(
    "--port",
    type=click.IntRange(0, 65535),
    default=8080,
    show_default=True,
    help="Port to listen on; 0 means any free port.",
)
@click.option("--workers", type=click.IntRange(1, 256), help="Number of worker processes.  [default: one per core]")
@click.option(
    "--queue", type=click.IntRange(0, 10_000), default=16, show_default=True, help="How many requests may wait."
)
@click.option(
    "--uploads", type=click.IntRange(1, 10_000), default=64, show_default=True, help="Bodies received at once."
)
@click.option(
    "--time-limit", type=_TIME, default="5s", show_default=True, metavar="TIME", help="Time limit of a search."
)
@click.option(
    "--max-time-limit",
    type=_TIME,
    default="60s",
    show_default=True,
    metavar="TIME",
    help="Largest time limit of a request.",
)
@click.option(
    "--timeout", type=_TIME, default="120s", show_default=True, metavar="TIME", help="From request to answer."
)
@click.option(
    "--read-timeout", type=_TIME, default="10s", show_default=True, metavar="TIME", help="How long a client may pause."
)
@click.option(
    "--grace",
    type=_TIME,
    default="30s",
    show_default=True,
    metavar="TIME",
    help="Time for running requests after SIGTERM.",
)
@click.option(
    "--max-body", type=_SIZE, default="64Mi", show_default=True, metavar="SIZE", help="Largest body, decompressed."
)
@click.option("--pools", type=_FILE, metavar="FILE", help="Node pools for requests that have none.")
@click.option("--prices", type=_FILE, metavar="FILE", help="Prices as CSV; they come before the packaged ones of EC2.")
@click.option("--region", default="", metavar="REGION", help="The cloud's region, if zones and nodes do not have it.")
@click.option(
    "--token-file", type=_FILE, metavar="FILE", help=f"The bearer token that clients need; else ${_TOKEN} if it is set."
)
@click.option("--tls-cert", type=_FILE, default="", metavar="FILE", help="A certificate chain (PEM): HTTPS.")
@click.option("--tls-key", type=_FILE, default="", metavar="FILE", help="Its private key.")
def command(
    host: str,
    port: int,
    workers: int | None,
    queue: int,
    uploads: int,
    time_limit: float,
    max_time_limit: float,
    timeout: float,
    read_timeout: float,
    grace: float,
    max_body: float,
    pools: str | None,
    prices: str | None,
    region: str,
    token_file: str | None,
    tls_cert: str,
    tls_key: str,
) -> None:
    """Run the recommender as an HTTP service.

    Takes snapshots of clusters and answers with plans for growing and shrinking them. Listens on this machine only,
    unless --host says otherwise. Reads no files for clients, and opens no connections.

    \b
    tutti recommender
    curl -d @cluster.json http://127.0.0.1:8080/v1/recommendations
    curl -d @snapshot.json http://127.0.0.1:8080/recommend/
    """
    from tutti.serve.settings import ServerSettings

    if sys.platform == "win32":
        raise click.UsageError("the service runs on Linux and macOS.")
    if bool(tls_cert) != bool(tls_key):
        raise click.UsageError("--tls-cert and --tls-key go together.")
    if time_limit > max_time_limit:
        raise click.UsageError("--time-limit is above --max-time-limit.")
    settings = ServerSettings(
        host=host,
        port=port,
        workers=workers or 0,
        queue=queue,
        uploads=uploads,
        time_limit=time_limit,
        max_time_limit=max_time_limit,
        timeout=timeout,
        read_timeout=read_timeout,
        grace=grace,
        max_body=int(max_body),
        token=_token(token_file),
        tls_cert=tls_cert,
        tls_key=tls_key,
        prices=_source(prices),
        pools=_source(pools),
        region=region,
    )
    _check(settings)
    _serve(settings)


def _serve(settings: ServerSettings) -> None:
    import logging

    from tutti.serve.server import RecommenderServer

    def listening(url: str) -> None:
        click.echo(f"tutti recommender listening on {url}", err=True)
        if settings.is_exposed and not settings.token:
            click.echo("warning: anybody who reaches this address can use it: give --token-file", err=True)

    form = logging.Formatter("%(asctime)s %(levelname)s %(message)s", datefmt="%Y-%m-%dT%H:%M:%S%z")
    handler = logging.StreamHandler()
    handler.setFormatter(form)
    logging.getLogger("tutti.serve").setLevel(logging.INFO)
    logging.basicConfig(handlers=[handler], level=logging.WARNING)
    if RecommenderServer(settings, listening).run() == signal.SIGINT:
        raise click.exceptions.Exit(_INTERRUPTED)


def _check(settings: ServerSettings) -> None:
    """Check prices, pools and region now, so that errors are reported at startup and not to the first client."""
    if settings.prices is None and settings.pools is None and not settings.region:
        return
    from tutti.exceptions import PoolError
    from tutti.kube.reading.snapshot import Snapshot
    from tutti.market.price_book import check_region
    from tutti.recommend.build_request import build_request, price_book

    check_region(settings.region, price_book(settings.prices), called="--region")
    with contextlib.suppress(PoolError):  # some pools are valid only together with the nodes of a cluster
        build_request(Snapshot(), pools=settings.pools, prices=settings.prices, region=settings.region)


def _source(path: str | None) -> Source | None:
    from tutti.exceptions import InputError
    from tutti.kube.reading.sources import read_sources

    if path is None:
        return None
    if Path(path).is_dir():
        raise InputError("want one file, not a directory", file=path)
    (source,) = read_sources([path])
    return source


def _token(path: str | None) -> str:
    from tutti.exceptions import InputError

    if path is None:
        return os.environ.get(_TOKEN, "")
    try:
        token = Path(path).read_text("utf-8").strip()
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else None
        raise InputError((reason or "not text in UTF-8").lower(), file=path) from None
    if not token:
        raise InputError("the file has no token", file=path)
    return token
