"""The ladder: clusters and queues of growing size, placed by Tutti and by kube-scheduler's own code in the same run.

Every row is a shape of the oracle (oracle/kube-scheduler, `bench`): the same nodes and pods go to both. kube-scheduler
looks at a sample of the nodes, as it does by default; Tutti scores every node. Each placement runs in a process of its
own, for its peak memory. Of every row 1 % of the decisions is asked again, in ten blocks, each on a freshly loaded
cluster, and must be the same.

usage: ladder.py [--oracle PATH] [--nodes 100 1000 5000] [--pods 1000 10000 50000] [--shapes ...] [--peer-seconds 10]
"""

from __future__ import annotations

import argparse
import gc
import json
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import msgspec

SHAPES = ("basic", "mix400", "deployments400", "spread-zone", "anti-affinity-host", "affinity-zone")
BLOCKS = 10


def main() -> None:
    """Run the ladder and print a row for each rung."""
    options = parse()
    if not options.oracle:
        print("no oracle (it needs Go): the peer's columns stay empty, and so do the inputs: nothing to run")
        return
    header = ("SHAPE", "NODES", "PODS", "PLACED", "PODS/S", "PEER/S", "RATIO", "MEMORY", "PEER", "LOAD", "ASKED AGAIN")
    print("{:20} {:>6} {:>7} {:>7} {:>9} {:>8} {:>8} {:>8} {:>7} {:>7}  {}".format(*header), flush=True)
    for shape in options.shapes:
        before: dict[int, float] = {}
        for nodes in options.nodes:
            for pods in options.pods:
                row = run_row(options, shape, nodes, pods)
                grown = f"  x{before[pods] / row['rate']:.1f} time per pod on more nodes" if pods in before else ""
                before[pods] = row["rate"]
                print(render(shape, nodes, pods, row) + grown, flush=True)


def parse() -> argparse.Namespace:
    """Read the command line."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--oracle", default="")
    parser.add_argument("--nodes", type=int, nargs="+", default=[100, 1000, 5000])
    parser.add_argument("--pods", type=int, nargs="+", default=[1000, 10000, 50000])
    parser.add_argument("--shapes", nargs="+", default=list(SHAPES), choices=SHAPES)
    parser.add_argument("--peer-seconds", type=float, default=10, help="stop kube-scheduler after this time (0: never)")
    parser.add_argument("--place", metavar="FILE", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.place:
        print(json.dumps(place(options.place)))
        sys.exit()
    return options


def run_row(options: argparse.Namespace, shape: str, nodes: int, pods: int) -> dict[str, Any]:
    """Make one input, and give it to both."""
    size = ["-nodes", str(nodes), "-pods", str(pods), "-shape", shape]
    with tempfile.TemporaryDirectory() as folder:
        file = str(Path(folder) / "input.json")
        subprocess.run([options.oracle, "bench", *size, "-dump", file], check=True)
        peer = json.loads(output([options.oracle, "bench", *size, "-seconds", str(options.peer_seconds)]))
        ours: dict[str, Any] = json.loads(output([sys.executable, __file__, "--place", file]))
    return ours | {"peer": peer["podsPerSecond"], "peer_memory": peer["peakRSSMiB"]}


def output(command: list[str]) -> str:
    """Run a command and give what it prints."""
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout


def render(shape: str, nodes: int, pods: int, row: dict[str, Any]) -> str:
    """Write one row."""
    return (
        f"{shape:20} {nodes:6} {pods:7} {row['placed']:7} {row['rate']:9,.0f} {row['peer']:8,.0f} "
        f"{row['rate'] / row['peer']:7.1f}x {row['memory']:6} M {row['peer_memory']:5} M {row['load']:6.2f}s  "
        f"{row['again']} of {row['repeated']} the same"
    )


# In a process of its own ----------------------------------------------------------------------------------------------


def place(file: str) -> dict[str, Any]:
    """Load a file, place its pending pods in the order of the queue, and ask 1 % again."""
    from tutti.cluster.cluster import Cluster
    from tutti.engine.placement.engine import Engine
    from tutti.kube.reading.loader import load_files
    from tutti.kube.reading.parsed_file import parse_file
    from tutti.kube.reading.sources import read_sources

    begin = time.perf_counter()
    snapshot = load_files(map(parse_file, read_sources([file])))
    cluster = Cluster(snapshot.all_objects())
    loaded = time.perf_counter() - begin
    queue = [pod.key for pod in snapshot.pods]
    gc.collect()
    gc.freeze()
    begin = time.perf_counter()
    decisions = Engine(cluster).place(queue)
    took = time.perf_counter() - begin
    memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss >> 10
    again = repeated = 0
    length = max(1, len(queue) // (100 * BLOCKS))
    for block in range(BLOCKS):
        first = (len(queue) - length) * block // max(1, BLOCKS - 1)
        same, number = ask_again(snapshot, decisions, first, length)
        again, repeated = again + same, repeated + number
    placed = sum(decision.node is not None for decision in decisions)
    rate = len(queue) / took
    return {"placed": placed, "rate": rate, "load": loaded, "memory": memory, "again": again, "repeated": repeated}


def ask_again(snapshot: Any, decisions: list[Any], first: int, length: int) -> tuple[int, int]:
    """Load a cluster in which the first pods stand where they were put, and decide the next ones one by one."""
    from tutti.cluster.cluster import Cluster
    from tutti.engine.placement.engine import Engine
    from tutti.kube.objects import Pod

    where = {decision.pod: decision.node for decision in decisions[:first]}
    objects = []
    for obj in snapshot.all_objects():
        node = where.get(obj.key) if isinstance(obj, Pod) else None
        if node is not None:
            obj = msgspec.structs.replace(obj, spec=msgspec.structs.replace(obj.spec, node_name=node))
        objects.append(obj)
    engine = Engine(Cluster(objects))
    repeated = decisions[first : first + length]
    return sum(engine.place([decision.pod])[0].node == decision.node for decision in repeated), len(repeated)


if __name__ == "__main__":
    main()
