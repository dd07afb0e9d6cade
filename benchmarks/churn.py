"""Churn: what a cluster keeps of pods, nodes, taints and gangs that have come and gone.

Each line runs in a process of its own: a cluster of 1,000 nodes and 2,000 pods with one engine, through which many
short-lived objects pass, in batches; `collect` runs after every batch. Jobs have 10 pods, of which a third of the Jobs
spreads over zones or keeps its pods on different nodes, by a selector of the Job's own name; pods are put, placed,
confirmed, finished and removed. Measured are the growth of the resident memory after the first 50,000, and the CPU time
and the counted work per edit, placements included, of the first and the last tenth after that.

usage: churn.py [--only jobs nodes taints gangs] [--share 1.0] [--no-collect]
"""

from __future__ import annotations

import argparse
import gc
import json
import subprocess
import sys
import time
from collections.abc import Callable, Iterable
from pathlib import Path

from msgspec.structs import replace

from tutti.cluster.cluster import Cluster
from tutti.cluster.edits import Edit, Put, Remove
from tutti.engine.placement.engine import Engine
from tutti.engine.session.policy import SECOND, Policy
from tutti.engine.session.queue import Queue
from tutti.engine.session.session import session
from tutti.kube import objects as k

TOTALS = {"jobs": 1_000_000, "nodes": 100_000, "taints": 100_000, "gangs": 100_000}
"""How many pods, node names, taint values and gangs come and go."""
BAR, WARM, BATCH = 150, 50_000, 300
HOSTNAME, ZONE = "kubernetes.io/hostname", "topology.kubernetes.io/zone"
NODES = 1_000


def main() -> None:
    """Run every line in a process of its own."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--only", nargs="+", default=list(TOTALS), choices=TOTALS)
    parser.add_argument("--share", type=float, default=1.0, help="run this share of the objects")
    parser.add_argument("--no-collect", action="store_true")
    parser.add_argument("--run", choices=TOTALS, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.run:
        print(json.dumps(Churn(options.run, options.share, collects=not options.no_collect).run()))
        return
    print(f"{'':8} {'OBJECTS':>9} {'GROWTH':>8} {'BAR':>8}   TIME AND WORK PER EDIT: FIRST, LAST   COLLECT, SELECTOR")
    for name in options.only:
        command = [sys.executable, __file__, "--run", name, "--share", str(options.share)]
        command += ["--no-collect"] * options.no_collect
        found = json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout)
        met = "met" if found["growth"] <= BAR else "MISSED"
        first, last = found["tenths"][0], found["tenths"][-1]
        print(
            f"{name:8} {found['total']:9,} {found['growth']:5.0f} MB {BAR:5} MB   "
            f"{first[0]:6.1f} us {first[1]:7,.0f} units, {last[0]:6.1f} us {last[1]:7,.0f} units   "
            f"{found['collect']:.1f} us per edit, {found['longest']:.1f} ms at most, "
            f"new hostname selector {found['selector']:.2f} ms  {met}",
            flush=True,
        )


def rss() -> float:
    """Return the resident memory of this process in MB."""
    return int(Path("/proc/self/statm").read_text().split()[1]) * 4096 / 1e6


class Churn:
    """One line: a cluster, its engine, and what passes through."""

    def __init__(self, name: str, share: float, *, collects: bool) -> None:
        self.total, self.collects = max(10 * BATCH, int(TOTALS[name] * share)), collects
        self.warm = min(WARM, self.total // 2)
        self.batch: Callable[[int], None] = getattr(self, f"_{name}")
        running = [pod(f"run-{i}", shape=i % 20, labels={"app": f"a{i % 200}"}, on=i % NODES) for i in range(2_000)]
        self.cluster = Cluster([*(node(i) for i in range(NODES)), *running])
        self.engine, self.queue = Engine(self.cluster), Queue(self.cluster)
        self.edits, self.clock = 0, 1_800_000_000 * SECOND
        self.collecting = self.longest = 0.0

    def run(self) -> dict[str, object]:
        """Let all objects pass."""
        meter, done, tenths = self.cluster.meter, 0, []
        start = (time.process_time(), meter.count, 0)
        before = 0.0
        step = (self.total - self.warm) // 10
        next_report = self.warm
        while done < self.total:
            self.batch(done)
            done += BATCH
            if self.collects:
                begin = time.process_time()
                self.cluster.collect()
                took = time.process_time() - begin
                self.collecting, self.longest = self.collecting + took, max(self.longest, took)
            if done >= next_report:
                now = (time.process_time(), meter.count, self.edits)
                edits = now[2] - start[2]
                if next_report == self.warm:
                    gc.collect()
                    before = rss()
                else:
                    tenths.append(((now[0] - start[0]) / edits * 1e6, (now[1] - start[1]) / edits))
                start = (time.process_time(), meter.count, self.edits)
                next_report += step
        gc.collect()
        growth = rss() - before
        return {
            "total": self.total, "growth": growth, "tenths": tenths, "longest": 1e3 * self.longest,
            "collect": 1e6 * self.collecting / self.edits, "selector": self.new_selector(),
        }  # fmt: skip

    def new_selector(self) -> float:
        """Return the milliseconds of a decision for a pod with a hostname selector that is new."""
        times = []
        for number in range(5):
            probe = pod(f"probe-{number}", selector={HOSTNAME: f"node-{number:05}"})
            self.apply([Put(probe)])
            begin = time.process_time()
            self.engine.decide(probe.key)
            times.append(1e3 * (time.process_time() - begin))
        return sorted(times)[2]

    def apply(self, edits: Iterable[Edit]) -> None:
        """Apply edits, and count them."""
        for edit in edits:
            self.cluster.apply(edit)
            self.edits += 1

    # Batches ----------------------------------------------------------------------------------------------------------

    def _jobs(self, first: int) -> None:
        pods = [job_pod(number) for number in range(first, first + BATCH)]
        self.apply(map(Put, pods))
        decisions = self.engine.place([each.key for each in pods])
        self.edits += len(decisions)
        self._end(pods, {decision.pod: decision.node for decision in decisions})

    def _end(self, pods: list[k.Pod], nodes: dict[str, str | None]) -> None:
        """Confirm, finish and remove pods."""
        running = [
            replace(p, spec=replace(p.spec, node_name=nodes[p.key]), status=k.PodStatus(phase="Running")) for p in pods
        ]
        self.apply(map(Put, running))
        self.apply(Put(replace(each, status=k.PodStatus(phase="Succeeded"))) for each in running)
        self.apply(Remove("Pod", each.key, each.metadata.uid) for each in running)

    def _gangs(self, first: int) -> None:
        pods = [
            pod(f"g{number}-{member}", annotations={"pod-group": f"g-{number}", "pod-group-min-member": "2"})
            for number in range(first, first + BATCH)
            for member in range(2)
        ]
        self.apply(map(Put, pods))
        self.clock += SECOND
        plan = session(self.engine, self.queue, self.clock, Policy())
        nodes = {bind.pod: bind.node for bind in plan.binds}
        assert len(nodes) == len(pods), plan
        self.edits += len(nodes)
        self._end(pods, dict(nodes))

    def _nodes(self, first: int) -> None:
        for number in range(first, first + BATCH):
            name = f"ip-{number * 7919 % 1_000_003:07}"
            made, passing = node(number, name), pod(f"x{number}", on=name)
            self.apply((Put(made), Put(passing), Remove("Node", name), Remove("Pod", passing.key)))
        self._place_one(first)

    def _taints(self, first: int) -> None:
        for number in range(first, first + BATCH):
            plain = node(number % NODES)
            taint = k.Taint(key="DeletionCandidate", value=str(1_800_000_000 + number), effect="PreferNoSchedule")
            self.apply((Put(replace(plain, spec=k.NodeSpec(taints=[taint]))), Put(plain)))
        self._place_one(first)

    def _place_one(self, number: int) -> None:
        """Place pods that read hostnames and taints."""
        by_host = k.TopologySpreadConstraint(
            max_skew=1, topology_key=HOSTNAME, when_unsatisfiable="ScheduleAnyway", label_selector=selects("x")
        )
        one = pod(f"one-{number}", labels={"job-name": "x"}, spread=by_host)
        two = pod(f"two-{number}", selector={HOSTNAME: f"node-{number % NODES:05}"})
        self.apply((Put(one), Put(two)))
        self.engine.place([one.key, two.key])
        self.apply((Remove("Pod", one.key), Remove("Pod", two.key)))
        self.edits += 2


# Objects --------------------------------------------------------------------------------------------------------------


def node(number: int, name: str | None = None) -> k.Node:
    """Return a node of one of three zones."""
    name = name or f"node-{number:05}"
    return k.Node(
        metadata=k.ObjectMeta(name=name, labels={HOSTNAME: name, ZONE: f"z{number % 3}"}),
        status=k.NodeStatus(allocatable={"cpu": "64", "memory": "256Gi", "pods": "110"}),
    )


def selects(job: str) -> k.LabelSelector:
    """Return a selector of a Job's pods."""
    return k.LabelSelector(match_labels={"job-name": job})


def job_pod(number: int) -> k.Pod:
    """Return a pod of a Job with 10 pods; a third of the Jobs has rules for its own pods."""
    job = number // 10
    name = f"job-{job}"
    labels = {"job-name": name, "batch.kubernetes.io/job-name": name, "controller-uid": f"u-{job}"}
    spread = affinity = None
    if job % 6 == 0:
        spread = k.TopologySpreadConstraint(max_skew=5, topology_key=ZONE, label_selector=selects(name))
    elif job % 6 == 3:
        term = k.PodAffinityTerm(topology_key=HOSTNAME, label_selector=selects(name))
        affinity = k.Affinity(pod_anti_affinity=k.PodAffinity(required=[term]))
    return pod(f"{name}-{number}", shape=job % 20, labels=labels, owner=name, spread=spread, affinity=affinity)


def pod(
    name: str,
    *,
    shape: int = 0,
    labels: dict[str, str] | None = None,
    annotations: dict[str, str] | None = None,
    owner: str | None = None,
    on: int | str | None = None,
    selector: dict[str, str] | None = None,
    spread: k.TopologySpreadConstraint | None = None,
    affinity: k.Affinity | None = None,
) -> k.Pod:
    """Return a pod of one of some sizes."""
    owners = None
    if owner is not None:
        owners = [k.OwnerReference(api_version="batch/v1", kind="Job", name=owner, uid=owner, controller=True)]
    requests: k.Quantities = {"cpu": "1", "memory": f"{1024 + shape}Mi"}
    return k.Pod(
        metadata=k.ObjectMeta(
            name=name, namespace="default", uid=f"uid-{name}", labels=labels, annotations=annotations,
            owner_references=owners,
        ),
        spec=k.PodSpec(
            containers=[k.Container(name="c", image="img:1", resources=k.ResourceRequirements(requests=requests))],
            node_name=f"node-{on:05}" if isinstance(on, int) else on,
            node_selector=selector,
            topology_spread_constraints=[spread] if spread else None,
            affinity=affinity,
        ),
        status=k.PodStatus(phase="Running" if on is not None else "Pending"),
    )  # fmt: skip


if __name__ == "__main__":
    main()
