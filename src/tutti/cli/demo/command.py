"""`tutti demo`: a tour of the main commands on an example cluster, in well under a minute.

Contract: runs the real commands on files in a temporary directory, and prints their answers; long answers are
shortened. Any error ends the tour. `--keep DIR` keeps the files for more experiments.
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
    """An explanation, and the command that it explains."""

    text: str
    command: str
    lines: int = 14
    """Number of lines of the answer that are shown."""


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
        "What if there were two more GPU nodes? Then no pod is evicted. A what-if changes a copy in memory; the "
        "cluster itself is never changed.",
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
        "that fills one is evicted, as a whole. reactor needs one more node in rack-3, and no pod has a lower "
        "priority: the gang waits, and holds no resources.",
        f"tutti schedule -f {CLUSTER} -n hpc",
    ),
    DemoStep(
        "What would make reactor start? Tutti has tried every cure in the list on a copy of the cluster.",
        f"tutti explain gang/reactor -f {CLUSTER}",
        lines=24,
    ),
    DemoStep(
        "Which nodes should be bought for the pods that wait? Every pool is tried in every zone, and the plan is "
        "replayed as kube-scheduler would bind. The answer has its price, and a price that no plan can be below.",
        f"tutti recommend -f {CLUSTER} --pools {POOLS} --time-limit 3",
        lines=8,
    ),
    DemoStep(
        "Are these kube-scheduler's answers? Tutti repeats recorded decisions of its own plugins: feasible nodes, "
        "reasons, every score, victims. The project's tests have about 11,000 of them.",
        f"tutti conformance {CASES}",
        lines=30,
    ),
)


@click.command("demo")
@click.option("--keep", type=click.Path(file_okay=False), metavar="DIR", help="Write the example there and keep it.")
def command(keep: str | None) -> None:
    """Tour the main jobs on a packaged example.

    Builds an example cluster of 480 nodes and about 5,000 pods, and shows scheduling, preemption, what-ifs,
    explanations, gangs, a purchase and a conformance run with the commands that you would type.
    """
    started = perf_counter()
    with tempfile.TemporaryDirectory() as temporary:
        directory = Path(keep or temporary)
        directory.mkdir(parents=True, exist_ok=True)
        _narrate("Building an example cluster: services, Spark jobs and training on 480 nodes in three zones.")
        click.echo(_write_example(directory))
        for step in STEPS:
            _narrate(step.text)
            _show(step, directory)
    _narrate(f"That was all, in {perf_counter() - started:.0f} s. Your own cluster: see docs/getting-started.md.")
    if keep:
        click.echo(f"The example is kept in {keep}.")


def _write_example(directory: Path) -> str:
    """Write the files of the example; return a description."""
    import msgspec

    from tutti.cli.demo.cluster import build_cluster

    example = build_cluster()
    (directory / CLUSTER).write_bytes(msgspec.json.encode(example.cluster))
    for name, packaged in ((POOLS, "pools.yaml"), (CASES, "conformance-sample.jsonl.gz")):
        (directory / name).write_bytes(resources.files("tutti.cli.demo").joinpath(packaged).read_bytes())
    return (
        f"{CLUSTER} has {len(example.cluster['items']):,} objects. Its running pods were placed by Tutti itself: "
        f"{example.placed:,} in {example.seconds:.1f} s,\n"
        f"{example.placed / example.seconds:,.0f} a second, with every node checked for each pod."
    )


def _narrate(text: str) -> None:
    click.echo()
    for line in textwrap.wrap(text, width=100):
        click.secho(f"# {line}", bold=True)


def _show(step: DemoStep, directory: Path) -> None:
    """Run a command and print the first lines of its output."""
    from tutti.cli.main import NAME, cli

    click.echo(f"$ {step.command}")
    arguments = shlex.split(step.command)[1:]
    printed = io.StringIO()
    started = perf_counter()
    with (
        contextlib.chdir(directory),
        contextlib.redirect_stdout(printed),
        contextlib.redirect_stderr(printed),
        cli.make_context(NAME, arguments) as context,
    ):
        cli.invoke(context)
    for line in _shortened(printed.getvalue().rstrip().splitlines(), step.lines):
        click.echo(line)
    click.secho(f"({perf_counter() - started:.1f} s)", dim=True)


def _shortened(lines: list[str], number: int) -> Iterator[str]:
    """Yield the first lines, the number of lines left out, and the last line."""
    if len(lines) <= number + 2:
        yield from lines
        return
    yield from lines[:number]
    yield f"... {len(lines) - number - 1} more lines ..."
    yield lines[-1]
