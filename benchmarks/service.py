"""The recommender as a service, held to its bars; prints one table.

A real server is started as a user would (`tutti recommender --port 0`) and talked to over HTTP:

    OpenAPI      2,000 cases of schemathesis, all its checks
    mutations    10,000 Gardener snapshots with something wrong in each: no 5xx, no hang, memory of server and workers
    together     8 requests of 4,500 pods at once: each plan as alone, and the health check meanwhile
    large        a snapshot of 5,000 nodes and 50,000 pods, 27.8 MB, to the first byte of its answer

`--only large together` runs some of them, `--cases` and `--snapshots` make them shorter.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import json
import os
import random
import re
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import msgspec
from snapshots import snapshot

Tree = dict[str, Any]

BARS = ("OpenAPI", "mutations", "together", "large")

# ---------------------------------------------------------------------------------------------------------------------
# Mutations

ODD: list[Any] = [
    None, "", " ", "x", "-1", "0", "1e400", "9" * 30, "\u0000", "ä" * 300, "../../etc/passwd", True, False, 0, -1, 1, 3,
    2**31, 2**53, 2**63 - 1, 2**63, -(2**63), 10**30, 0.5, -0.0, 1e308, [], {}, [None], [[]], {"": ""},
    {"a": {"b": []}}, "100m", "1Gi", "-5Gi", "1.5", "NoSchedule", "eu-west-1a", "kube-system", [1, "a", {}],
    "2026-13-45T99:99:99Z",
]  # fmt: skip


def bases() -> list[Tree]:
    """Return small snapshots that use all fields."""
    plain = snapshot(nodes=3, pods=15, waiting=6, seed=3)
    rich = snapshot(nodes=4, pods=20, waiting=8, seed=4)
    rich["PriorityClasses"] = [
        {"metadata": {"name": "high"}, "value": 1000, "preemptionPolicy": "PreemptLowerPriority"}
    ]
    rich["WorkerPools"][0]["Taints"] = [{"key": "a", "value": "b", "effect": "NoSchedule"}]
    app = {"matchLabels": {"app": "wait"}}
    for number, pod in enumerate(rich["Pods"]):
        spec = pod["Spec"]
        spec["tolerations"] = [{"key": "a", "operator": "Exists"}]
        if number % 3 == 0:
            spec["topologySpreadConstraints"] = [
                {"maxSkew": 1, "topologyKey": "topology.kubernetes.io/zone", "whenUnsatisfiable": "DoNotSchedule",
                 "labelSelector": app}
            ]  # fmt: skip
        if number % 3 == 1:
            term = {"topologyKey": "kubernetes.io/hostname", "labelSelector": app}
            spec["affinity"] = {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [term]}}
        if number % 3 == 2:
            spec["nodeSelector"] = {"kubernetes.io/arch": "amd64"}
            spec["priorityClassName"] = "high"
    return [plain, rich]


def mutated(chance: random.Random, base: Tree) -> bytes:
    """Return a snapshot with one to four errors."""
    tree = json.loads(json.dumps(base))
    for _ in range(chance.choice((1, 1, 1, 2, 4))):
        _mutate(chance, tree)
    data = json.dumps(tree).encode()
    if chance.random() < 0.08:  # and now and then the text itself
        raw = bytearray(data)
        for _ in range(chance.choice((1, 1, 5))):
            raw[chance.randrange(len(raw))] = chance.randrange(256)
        data = bytes(raw)
    if chance.random() < 0.03:
        data = data[: chance.randrange(len(data))]
    return data


def _mutate(chance: random.Random, tree: Any) -> None:
    """Change something at a random depth."""
    while True:
        keys = list(tree) if isinstance(tree, dict) else list(range(len(tree)))
        if not keys:
            return
        key = chance.choice(keys)
        inner = tree[key]
        if isinstance(inner, dict | list) and inner and chance.random() < 0.85:
            tree = inner
            continue
        break
    what = chance.randrange(6)
    if what <= 2:
        tree[key] = chance.choice(ODD)
    elif what == 3:
        del tree[key]
    elif what == 4 and isinstance(tree, dict):
        tree[chance.choice((str(key).lower(), str(key).upper(), f"{key}X", "name", "Spec"))] = tree.pop(key)
    elif isinstance(tree, list):
        tree.append(json.loads(json.dumps(inner)))
    else:
        tree[key] = [inner]


# ---------------------------------------------------------------------------------------------------------------------
# The server


class Server:
    """A `tutti recommender` in its own process."""

    def __init__(self, *arguments: str) -> None:
        program = str(Path(sys.executable).parent / "tutti")
        handle, name = tempfile.mkstemp(prefix="tutti-recommender-", suffix=".log")
        self._log = Path(name)
        self.process = subprocess.Popen([program, "recommender", "--port", "0", *arguments], stderr=handle)
        os.close(handle)
        self.url = ""
        while not self.url:
            time.sleep(0.05)
            found = re.search(r"listening on (\S+)", self.log())
            self.url = found[1] if found else ""
        while httpx.get(f"{self.url}/readyz").status_code != 200:
            time.sleep(0.05)

    def log(self) -> str:
        """Return the server's log."""
        return self._log.read_text("utf-8")

    def memory(self) -> int:
        """Return the memory of the server and its workers in bytes."""
        total = 0
        for stat in Path("/proc").glob("[0-9]*/stat"):
            with contextlib.suppress(OSError):
                fields = stat.read_text().rpartition(")")[2].split()
                if self.process.pid in (int(stat.parent.name), int(fields[1])):
                    total += int(fields[21]) * os.sysconf("SC_PAGE_SIZE")
        return total

    def close(self) -> None:
        """Shut the server down."""
        self.process.send_signal(signal.SIGTERM)
        if self.process.wait(60):
            print(f"the server ended with {self.process.returncode}")


@contextlib.contextmanager
def served(*arguments: str) -> Iterator[Server]:
    """A server for a block."""
    server = Server(*arguments)
    try:
        yield server
    finally:
        server.close()


# ---------------------------------------------------------------------------------------------------------------------
# The bars: each gives lines of (what, bar, measured, whether it holds)

Line = tuple[str, str, str, bool]


def openapi(cases: int) -> list[Line]:
    """schemathesis, as its command line runs; a body may be refused although the document allows it."""
    config = '[checks.positive_data_acceptance]\nexpected-statuses = ["2xx", "400", "422"]\n'
    with served() as server, tempfile.TemporaryDirectory() as folder:
        (Path(folder) / "schemathesis.toml").write_text(config)
        program = str(Path(sys.executable).parent / "schemathesis")
        done = subprocess.run(
            [program, "--config-file", f"{folder}/schemathesis.toml", "run", f"{server.url}/openapi.json",
             "--max-examples", str(max(cases // 2, 1)), "--seed", "1", "--no-color"],
            capture_output=True, text=True, check=False, cwd=folder,
        )  # fmt: skip
        found = re.search(r"(\d+) generated, (\d+) passed", done.stdout)
        failed = len(re.findall(r" 5\d\d \d+ ms", server.log()))
    if done.returncode:
        print(done.stdout[-6000:])
    generated, passed = (int(found[1]), int(found[2])) if found else (0, 0)
    return [
        ("schemathesis, cases", f">= {cases:,}", f"{generated:,}", generated >= cases),
        ("schemathesis, failures", "0", f"{generated - passed}", done.returncode == 0),
        ("schemathesis, 5xx", "0", f"{failed}", failed == 0),
    ]


def mutations(count: int) -> list[Line]:
    """Broken snapshots, two at a time."""
    with served("--timeout", "60s") as server:
        found = asyncio.run(_post_mutations(server, count))
        faults = Counter(re.findall(r"ERROR request \S+ .*?\n((?:  .*\n|\S.*\n)*?)(\w+)\n(?=\d{4}-)", server.log()))
    print("statuses:", ", ".join(f"{status}: {number:,}" for status, number in sorted(found.statuses.items())))
    print("memory, MiB:", " ".join(f"{size / 2**20:.0f}" for size in found.memory))
    for (trace, kind), number in faults.most_common(12):
        print(f"{number} x {kind}: {trace.strip().splitlines()[-2:]}")
    bad = sum(number for status, number in found.statuses.items() if status >= 500)
    first = found.memory[min(max(1, len(found.memory) // 10), len(found.memory) - 1)]
    growth = max(found.memory[len(found.memory) // 10 :]) / first - 1
    return [
        (f"{count:,} mutated snapshots, 5xx", "0", f"{bad}", bad == 0),
        ("longest answer", "<= 60 s", f"{found.longest:.1f} s", found.longest < 60),
        ("memory growth after a tenth", "<= 10 %", f"{growth:.1%}", growth <= 0.1),
    ]


class _Found:
    def __init__(self) -> None:
        self.statuses: Counter[int] = Counter()
        self.memory: list[int] = []
        self.longest = 0.0


async def _post_mutations(server: Server, count: int) -> _Found:
    found, known = _Found(), bases()
    numbers = iter(range(count))
    async with httpx.AsyncClient(base_url=server.url, timeout=120) as client:

        async def post() -> None:
            for number in numbers:
                chance = random.Random(number)
                body = mutated(chance, known[number % len(known)])
                path = "/recommend" if number % 4 else "/v1/recommendations?down=true"
                started = time.monotonic()
                response = await client.post(path, content=body)
                found.longest = max(found.longest, time.monotonic() - started)
                found.statuses[response.status_code] += 1
                if response.status_code >= 500:
                    Path(tempfile.gettempdir(), f"mutated-{number}.json").write_bytes(body)
                if number % max(count // 50, 1) == 0:
                    found.memory.append(server.memory())

        await asyncio.gather(post(), post())
    return found


def together(pods: int) -> list[Line]:
    """Eight at once, each compared with itself alone, and the health check meanwhile."""
    numbers = {"nodes": pods // 90, "pods": pods, "waiting": pods * 8 // 9}
    bodies = [msgspec.json.encode(snapshot(**numbers, seed=seed)) for seed in range(8)]
    with served() as server:
        alone = [httpx.post(f"{server.url}/recommend", content=body, timeout=300) for body in bodies]
        answers, health = asyncio.run(_at_once(server.url, bodies))
    same = sum(_plan(one) == _plan(other) for one, other in zip(alone, answers, strict=True))
    ok = sum(each.status_code == 200 for each in answers)
    health.sort()
    p99 = health[int(len(health) * 0.99)]
    print(f"alone: {[f'{each.elapsed.total_seconds():.1f} s' for each in alone]}")
    print(f"together: {[f'{each.elapsed.total_seconds():.1f} s' for each in answers]}; {len(health):,} health checks")
    return [
        (f"8 x {pods:,} pods at once, answered", "8", f"{ok}", ok == 8),
        ("the same plan as alone", "8", f"{same}", same == 8),
        ("health check meanwhile, p99", "<= 50 ms", f"{p99 * 1000:.1f} ms (max {health[-1] * 1000:.0f})", p99 <= 0.05),
    ]


def _plan(response: httpx.Response) -> Any:
    answer = response.json()
    answer.pop("runTime")
    return answer


async def _at_once(url: str, bodies: list[bytes]) -> tuple[list[httpx.Response], list[float]]:
    took: list[float] = []
    async with httpx.AsyncClient(base_url=url, timeout=300) as client, httpx.AsyncClient(base_url=url) as other:

        async def look() -> None:
            while True:
                started = time.monotonic()
                assert (await other.get("/healthz")).status_code == 200
                took.append(time.monotonic() - started)
                await asyncio.sleep(0.01)

        looking = asyncio.create_task(look())
        answers = await asyncio.gather(*(client.post("/recommend", content=body) for body in bodies))
        looking.cancel()
    return list(answers), took


def to_first_byte() -> list[Line]:
    """The large snapshot, with the health check meanwhile."""
    body = msgspec.json.encode(snapshot(nodes=5_000, pods=50_000))
    lines: list[Line] = []
    with served() as server:
        for query in ("?down=false", ""):
            first, status, health = asyncio.run(_first_byte(server.url, f"/recommend{query}", body))
            what = "without scale-down" if query else "with scale-down"
            name = f"{len(body) / 1e6:.1f} MB, {what}, first byte"
            lines.append((name, "<= 6 s", f"{first:.2f} s ({status})", first <= 6 and status == 200))
            p99 = sorted(health)[int(len(health) * 0.99)]
            lines.append(("health check meanwhile, p99", "<= 50 ms", f"{p99 * 1000:.1f} ms", p99 <= 0.05))
    return lines


async def _first_byte(url: str, path: str, body: bytes) -> tuple[float, int, list[float]]:
    took: list[float] = []
    async with httpx.AsyncClient(base_url=url, timeout=300) as client, httpx.AsyncClient(base_url=url) as other:

        async def look() -> None:
            while True:
                started = time.monotonic()
                assert (await other.get("/healthz")).status_code == 200
                took.append(time.monotonic() - started)
                await asyncio.sleep(0.01)

        looking = asyncio.create_task(look())
        started = time.monotonic()
        async with client.stream("POST", path, content=body) as response:
            first = time.monotonic() - started
            await response.aread()
        looking.cancel()
    return first, response.status_code, took


def main() -> None:
    """Run the bars and print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", nargs="+", choices=BARS, default=list(BARS))
    parser.add_argument("--cases", type=int, default=2_000)
    parser.add_argument("--snapshots", type=int, default=10_000)
    parser.add_argument("--pods", type=int, default=4_500)
    options = parser.parse_args()
    lines: list[Line] = []
    if "large" in options.only:
        lines += to_first_byte()
    if "together" in options.only:
        lines += together(options.pods)
    if "OpenAPI" in options.only:
        lines += openapi(options.cases)
    if "mutations" in options.only:
        lines += mutations(options.snapshots)
    width = max(len(line[0]) for line in lines)
    print(f"\n{'WHAT':{width}}  {'BAR':10}  MEASURED")
    for what, bar, measured, holds in lines:
        print(f"{what:{width}}  {bar:10}  {measured}{'' if holds else '   <-- missed'}")
    sys.exit(0 if all(line[3] for line in lines) else 1)


if __name__ == "__main__":
    main()
