"""The bars that are times: one decision, one template, one edit, one large file, one --help.

Prints what was measured beside the bar; asserts nothing. Inputs come from the oracle (`bench -dump`), so that they are
those of the ladder; the large file is made here.

usage: bars.py --oracle PATH [--nodes 5000] [--pods 50000]
"""

from __future__ import annotations

import argparse
import gc
import json
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import msgspec

SHAPES = ("basic", "mix400", "deployments400", "spread-zone", "anti-affinity-host", "affinity-zone")
TIMES = 1000


def main() -> None:
    """Measure all bars."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--oracle", default="")
    parser.add_argument("--nodes", type=int, default=5000)
    parser.add_argument("--pods", type=int, default=50000)
    parser.add_argument("--load", metavar="FILE", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.load:
        print(json.dumps(load_file(options.load)))
        return
    print(f"{'WHAT':58} {'BAR':>12} {'MEASURED':>24}", flush=True)
    with tempfile.TemporaryDirectory() as folder:
        large = Path(folder) / "pods.json"
        write_pods(large, options.pods)
        report = json.loads(run([sys.executable, __file__, "--load", str(large)]))
        show(
            f"load {options.pods:,} pods, {large.stat().st_size >> 20} MiB of JSON, into a cluster",
            "6 s",
            f"{report['seconds']:.2f} s",
        )
        show("  peak memory of the process", "900 MB", f"{report['memory']} MB")
        large.unlink()
        program = str(Path(sys.executable).parent / "tutti")
        helps = [timed(lambda: run([program, "--help"])) for _ in range(15)]
        show("tutti --help", "200 ms", f"{statistics.median(helps) * 1000:.0f} ms median")
        if not options.oracle:
            print("no oracle (it needs Go): the other bars need its inputs")
            return
        for shape in SHAPES:
            file = Path(folder) / f"{shape}.json"
            size = ["-nodes", str(options.nodes), "-pods", str(options.pods + TIMES), "-shape", shape]
            run([options.oracle, "bench", *size, "-dump", str(file)])
            warm(shape, file, options.pods)
            file.unlink()


def show(what: str, bar: str, measured: str) -> None:
    """Print one line."""
    print(f"{what:58} {'<= ' + bar:>12} {measured:>24}", flush=True)


def run(command: list[str]) -> str:
    """Run a command and give what it prints."""
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout


def timed(work: Callable[[], object]) -> float:
    """Give how many seconds something takes."""
    begin = time.perf_counter()
    work()
    return time.perf_counter() - begin


def load_file(file: str) -> dict[str, Any]:
    """Load one file into a cluster, in a process of its own."""
    from tutti.cluster.cluster import Cluster
    from tutti.kube.admission.prepare import prepare
    from tutti.kube.reading.loader import load_files
    from tutti.kube.reading.parsed_file import parse_file
    from tutti.kube.reading.sources import read_sources

    begin = time.perf_counter()
    cluster = Cluster(prepare(load_files(map(parse_file, read_sources([file])))).all_objects())
    seconds = time.perf_counter() - begin
    assert cluster.pods.row_of
    return {"seconds": seconds, "memory": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1000}


# A warm cluster -------------------------------------------------------------------------------------------------------


def warm(shape: str, file: Path, pods: int) -> None:
    """Place all but the last pods of a shape, then measure single decisions and edits."""
    from tutti.cluster.cluster import Cluster
    from tutti.cluster.edits import Bind
    from tutti.engine.placement.engine import Engine
    from tutti.kube.reading.loader import load_files
    from tutti.kube.reading.parsed_file import parse_file
    from tutti.kube.reading.sources import read_sources

    snapshot = load_files(map(parse_file, read_sources([str(file)])))
    cluster = Cluster(snapshot.all_objects())
    queue = [pod.key for pod in snapshot.pods]
    engine = Engine(cluster)
    engine.place(queue[:pods])
    gc.collect()
    gc.freeze()
    times = []
    for key in queue[pods:]:
        begin = time.perf_counter()
        decision = engine.decide(key)
        times.append(time.perf_counter() - begin)
        if decision.node is not None:
            cluster.apply(Bind(key, decision.node))
    times.sort()
    measured = f"{times[len(times) // 2] * 1e3:.2f} median {times[int(len(times) * 0.99)] * 1e3:.2f} ms p99"
    show(f"one decision, {shape}, {len(cluster.nodes.row_of):,} nodes, {pods:,} pods", "2 ms p99", measured)
    template(shape, cluster, engine, queue[-1])
    edits(shape, cluster, snapshot)


def template(shape: str, cluster: Any, engine: Any, pod: str) -> None:
    """Switch a template on, ask one class, roll back."""
    from tutti.cluster.edits import PutTemplate, Switch, Unbind

    like = cluster.nodes.objects[0]
    name = "template-0"
    labels = {**(like.metadata.labels or {}), "kubernetes.io/hostname": name}
    cluster.apply(
        PutTemplate(
            msgspec.structs.replace(like, metadata=msgspec.structs.replace(like.metadata, name=name, labels=labels))
        )
    )
    cluster.apply(Unbind(pod))
    engine.decide(pod)
    times = []
    for _ in range(300):
        begin = time.perf_counter()
        mark = cluster.mark()
        cluster.apply(Switch(name, on=True))
        engine.decide(pod)
        cluster.rollback(mark)
        times.append(time.perf_counter() - begin)
    show(
        f"switch a template on, ask one class, roll back, {shape}",
        "300 us",
        f"{statistics.median(times) * 1e6:.0f} us median",
    )


def edits(shape: str, cluster: Any, snapshot: Any) -> None:
    """Apply watch edits: pods and nodes put and removed."""
    for what, made in watch_edits(cluster, snapshot):
        times = [timed(lambda edit=edit: cluster.apply(edit)) for edit in made]  # type: ignore[misc]
        show(f"apply one edit, {shape}: {what}", "100 us", f"{statistics.median(times) * 1e6:.1f} us median")


def watch_edits(cluster: Any, snapshot: Any) -> Iterator[tuple[str, list[Any]]]:
    """Make the edits that a watch would deliver."""
    from tutti.cluster.edits import Put, Remove

    pods = snapshot.pods[:TIMES]
    running = []
    for pod in pods:
        node = cluster.pods.node_names[cluster.pods.row_of[pod.key]]
        status = msgspec.structs.replace(pod.status, phase="Running", start_time="2026-01-02T00:00:00Z")
        running.append(
            msgspec.structs.replace(pod, spec=msgspec.structs.replace(pod.spec, node_name=node), status=status)
        )
    yield "pod starts to run", [Put(pod) for pod in running]
    yield "pod removed", [Remove("Pod", pod.key) for pod in running]
    yield "pod added", [Put(pod) for pod in running]
    nodes = snapshot.nodes[:TIMES]
    beats = [msgspec.structs.replace(n, status=msgspec.structs.replace(n.status, conditions=None)) for n in nodes]
    yield "node status", [Put(node) for node in beats]
    yield "node removed", [Remove("Node", node.metadata.name) for node in nodes[:100]]
    yield "node added", [Put(node) for node in nodes[:100]]


def write_pods(path: Path, number: int) -> None:
    """Write a list of running pods of a realistic size, as kubectl prints them."""
    with path.open("w") as file:
        file.write('{"apiVersion":"v1","kind":"List","items":[')
        for i in range(number):
            file.write(("," if i else "") + json.dumps(a_pod(i)))
        file.write("]}")


def a_pod(i: int) -> dict[str, Any]:
    """Make one pod with what pods carry besides what scheduling reads."""
    app, when = f"web-{i % 400}", f"2026-05-{1 + i % 28:02}T{i % 24:02}:{i % 60:02}:00Z"
    size = {"cpu": f"{100 + i % 400}m", "memory": f"{256 + i % 400}Mi"}
    probe = {"httpGet": {"path": "/healthz", "port": 8080, "scheme": "HTTP"}, "periodSeconds": 10, "timeoutSeconds": 1}
    mounts = [
        {"mountPath": "/var/run/secrets/kubernetes.io/serviceaccount", "name": "kube-api-access", "readOnly": True}
    ]
    container = {
        "name": "main", "image": f"registry.example/{app}:v1", "imagePullPolicy": "IfNotPresent",
        "env": [{"name": f"SETTING_{n}", "value": f"the value of setting {n} of {app}"} for n in range(16)],
        "livenessProbe": probe, "readinessProbe": probe, "startupProbe": probe,
        "ports": [{"containerPort": 8080, "name": "http", "protocol": "TCP"}],
        "resources": {"limits": {"memory": size["memory"]}, "requests": size}, "volumeMounts": mounts,
    }  # fmt: skip
    status = {
        "name": "main", "allocatedResources": size, "resources": {"requests": size}, "ready": True, "restartCount": 0,
        "containerID": f"containerd://{i:064x}", "imageID": f"registry.example/{app}@sha256:{i:064x}",
        "state": {"running": {"startedAt": when}}, "volumeMounts": mounts,
    }  # fmt: skip
    conditions = [
        {"type": kind, "status": "True", "lastProbeTime": None, "lastTransitionTime": when}
        for kind in ("PodReadyToStartContainers", "Initialized", "Ready", "ContainersReady", "PodScheduled")
    ]
    return {
        "apiVersion": "v1", "kind": "Pod",
        "metadata": {
            "name": f"{app}-6f8d9c7b5-{i:05}", "generateName": f"{app}-6f8d9c7b5-", "namespace": f"team-{i % 40}",
            "uid": f"{i:08x}-0000-4000-8000-000000000000", "creationTimestamp": when, "resourceVersion": str(i),
            "labels": {"app": app, "app.kubernetes.io/name": app, "pod-template-hash": "6f8d9c7b5"},
            "annotations": {"kubectl.kubernetes.io/restartedAt": when, "prometheus.io/scrape": "true"},
            "ownerReferences": [{"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": f"{app}-6f8d9c7b5", "uid": app,
                                 "controller": True, "blockOwnerDeletion": True}],
        },
        "spec": {
            "containers": [container], "nodeName": f"node-{i % 5000:05}", "priority": 0,
            "schedulerName": "default-scheduler", "restartPolicy": "Always", "dnsPolicy": "ClusterFirst",
            "serviceAccountName": "default",
            "tolerations": [
                {"key": f"node.kubernetes.io/{why}", "operator": "Exists", "effect": "NoExecute",
                 "tolerationSeconds": 300}
                for why in ("not-ready", "unreachable")
            ],
            "volumes": [{"name": "kube-api-access", "projected": {"defaultMode": 420, "sources": [
                {"serviceAccountToken": {"expirationSeconds": 3607, "path": "token"}},
                {"configMap": {"items": [{"key": "ca.crt", "path": "ca.crt"}], "name": "kube-root-ca.crt"}}]}}],
        },
        "status": {"phase": "Running", "startTime": when, "conditions": conditions, "containerStatuses": [status],
                   "hostIP": "10.0.0.1", "podIP": "10.1.2.3", "podIPs": [{"ip": "10.1.2.3"}], "qosClass": "Burstable"},
    }  # fmt: skip


if __name__ == "__main__":
    main()
