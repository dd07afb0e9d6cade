"""`tutti demo`: a narrated tour of the main jobs on an example cluster, in well under a minute.

Contract: every answer comes from the commands themselves, run here on files in a temporary directory; long answers are
cut. Anything that goes wrong ends the tour with an error. `--keep DIR` keeps the files to try more on them.
"""

from __future__ import annotations

import contextlib
import io
import shlex
import tempfile
import textwrap
from collections.abc import Iterator
from importlib import resources
from pathlib import Path
from time import perf_counter
from typing import NamedTuple

import click

CLUSTER, POOLS, CASES = "cluster.json", "pools.yaml", "cases.jsonl.gz"


class DemoStep(NamedTuple):
    """What is told, and the command that shows it."""

    text: str
    command: str
    lines: int = 14
    """How much of the answer is shown."""


STEPS = (
    DemoStep(
        "Where do the pending pods of namespace data go? One fits nowhere, and the reason is in kube-scheduler's own "
        "words. Two wait for a gate: they are counted, not tried.",
        f"tutti schedule -f {CLUSTER} -n data",
    ),
    DemoStep(
        "A training job of high priority finds all GPUs taken, some of them by experiments of low priority. As "
        "kube-scheduler would, Tutti evicts those, on the nodes where that does the least harm.",
        f"tutti schedule -f {CLUSTER} -n ml -l app=llm-pretrain",
        lines=10,
    ),
    DemoStep(
        "What if there were two more GPU nodes? Nobody is evicted. A what-if is an edit of the picture; the cluster "
        "itself is never touched.",
        f"tutti schedule -f {CLUSTER} -n ml -l app=llm-pretrain --add gpu-000=2",
    ),
    DemoStep(
        "What if a node were drained and a service grew at the same time? All pods are scheduled together; -n and -l "
        "choose which of them are shown.",
        f"tutti schedule -f {CLUSTER} -n web -l app=svc-110 --drain general-000 --scale deployment/svc-110=36",
    ),
    DemoStep(
        "Why does warehouse-load-0 not fit? Nodes that say the same share a line; -o wide lists each of them.",
        f"tutti explain pod/warehouse-load-0 -f {CLUSTER}",
    ),
    DemoStep(
        "Why is cache-0-0 where it is, and would it go there again today? Every plugin's part of each score is there.",
        f"tutti explain pod/cache-0-0 -f {CLUSTER}",
        lines=22,
    ),
    DemoStep(
        "Gangs start whole or not at all, here each in one rack. weather finds none free, so the least important gang "
        "that fills one is evicted, as a whole. reactor would need one node more in rack-3, and nobody matters less "
        "than it does: it waits, and holds nothing.",
        f"tutti schedule -f {CLUSTER} -n hpc",
    ),
    DemoStep(
        "What would make reactor start? Every cure that is named has been tried on the picture.",
        f"tutti explain gang/reactor -f {CLUSTER}",
        lines=24,
    ),
    DemoStep(
        "What should be bought for the pods that wait? Every pool is tried in every zone, and the plan is replayed as "
        "kube-scheduler would bind. It comes with its price, and with what no plan can cost less than.",
        f"tutti recommend -f {CLUSTER} --pools {POOLS} --time-limit 3",
        lines=8,
    ),
    DemoStep(
        "Are these kube-scheduler's answers? Recorded decisions of its own plugins are asked again: feasible nodes, "
        "reasons, every score, victims. The project's tests hold some 11,000 of them.",
        f"tutti conformance {CASES}",
        lines=30,
    ),
)


@click.command("demo")
@click.option("--keep", type=click.Path(file_okay=False), metavar="DIR", help="Write the example there and keep it.")
def command(keep: str | None) -> None:
    """Tour the main jobs on a packaged example.

    An example cluster of 480 nodes and some 5,000 pods is made, and scheduling, preemption, what-ifs, explanations,
    gangs, a purchase and a conformance run are shown on it with the commands that you would type.
    """
    started = perf_counter()
    with tempfile.TemporaryDirectory() as temporary:
        here = Path(keep or temporary)
        here.mkdir(parents=True, exist_ok=True)
        _tell("An example cluster is made: services, Spark jobs and training on 480 nodes in three zones.")
        click.echo(_make(here))
        for step in STEPS:
            _tell(step.text)
            _show(step, here)
    _tell(f"That was all, in {perf_counter() - started:.0f} s. Your own cluster: see docs/getting-started.md.")
    if keep:
        click.echo(f"The example is kept in {keep}.")


def _make(here: Path) -> str:
    """Write the example's files, and say what is in them."""
    import msgspec

    from tutti.cli.demo.cluster import build_cluster

    example = build_cluster()
    (here / CLUSTER).write_bytes(msgspec.json.encode(example.cluster))
    for name, packaged in ((POOLS, "pools.yaml"), (CASES, "conformance-sample.jsonl.gz")):
        (here / name).write_bytes(resources.files("tutti.cli.demo").joinpath(packaged).read_bytes())
    return (
        f"{CLUSTER} has {len(example.cluster['items']):,} objects. Its running pods were placed by Tutti itself: "
        f"{example.placed:,} in {example.seconds:.1f} s,\n"
        f"{example.placed / example.seconds:,.0f} a second, with every node looked at for each."
    )


def _tell(text: str) -> None:
    click.echo()
    for line in textwrap.wrap(text, width=100):
        click.secho(f"# {line}", bold=True)


def _show(step: DemoStep, here: Path) -> None:
    """Run a command and show the beginning of what it prints."""
    from tutti.cli.main import NAME, cli

    click.echo(f"$ {step.command}")
    arguments = shlex.split(step.command)[1:]
    printed = io.StringIO()
    began = perf_counter()
    with (
        contextlib.chdir(here),
        contextlib.redirect_stdout(printed),
        contextlib.redirect_stderr(printed),
        cli.make_context(NAME, arguments) as context,
    ):
        cli.invoke(context)
    for line in _cut(printed.getvalue().rstrip().splitlines(), step.lines):
        click.echo(line)
    click.secho(f"({perf_counter() - began:.1f} s)", dim=True)


def _cut(lines: list[str], number: int) -> Iterator[str]:
    """The first lines, the last one, and how many are between."""
    if len(lines) <= number + 2:
        yield from lines
        return
    yield from lines[:number]
    yield f"... {len(lines) - number - 1} more lines ..."
    yield lines[-1]
