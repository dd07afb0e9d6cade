#!/usr/bin/env python3
"""Instances for the Karpenter oracle (standard library only).

  gen.py instances [--prices FILE] [--seed N] > instances.jsonl      (default: the prices beside, the seed of the vectors)
  gen.py merge instances.jsonl answers.jsonl out.jsonl.gz      put the answers into the instances
  gen.py check out.jsonl.gz                                    independent arithmetic over the recorded answers
  gen.py bench --pods 1000 [--types 400] [--seed 42] > bench.jsonl
"""
import argparse
import csv
import gzip
import json
import math
import os
import random
import re
import sys

PRICES = os.path.join(os.path.dirname(os.path.abspath(__file__)), "prices-us-east-1.csv.gz")
REGION = "us-east-1"
ZONES = ["us-east-1a", "us-east-1b", "us-east-1c"]
VECTOR_SEED = 20261
POD_COUNTS = [10, 24, 60, 120, 250, 500, 1000, 2000]
TEN = ["m5.large", "m5.xlarge", "m5.2xlarge", "m5.4xlarge", "c5.large", "c5.xlarge", "c5.2xlarge",
       "r5.large", "r5.xlarge", "r5.2xlarge"]
SIZES = ["large", "xlarge", "2xlarge", "4xlarge", "8xlarge"]

ZONE = "topology.kubernetes.io/zone"
HOST = "kubernetes.io/hostname"
ARCH = "kubernetes.io/arch"
OS = "kubernetes.io/os"
TYPE = "node.kubernetes.io/instance-type"
CT = "karpenter.sh/capacity-type"
POOL = "karpenter.sh/nodepool"
AWS = "karpenter.k8s.aws/instance-"
GPU = "nvidia.com/gpu"


# ---------------------------------------------------------------- instance types

def load_prices(path):
    rows = {}
    with gzip.open(path, "rt") if path.endswith(".gz") else open(path) as f:
        for r in csv.DictReader(f):
            if r["region"] != REGION or not r["on_demand_usd_h"] or not r["max_pods"] or not r["zones"]:
                continue
            if int(r["zones"]) < 3:
                continue
            rows[r["instance_type"]] = r
    return rows


def overhead(vcpus, pods):
    """EKS kube-reserved (6 % of the first core, 1 % of the second, 0.5 % of the next two, 0.25 % of the rest;
    255 MiB + 11 MiB per pod) plus the 100 MiB hard-eviction threshold."""
    milli = 0.0
    for core in range(vcpus):
        milli += 60 if core == 0 else 10 if core == 1 else 5 if core < 4 else 2.5
    return {"cpu": f"{int(milli)}m", "memory": f"{255 + 11 * pods + 100}Mi"}


class Catalog:
    def __init__(self, path):
        self.rows = load_prices(path)

    def names(self, families, sizes=SIZES):
        return [f"{f}.{s}" for f in families for s in sizes if f"{f}.{s}" in self.rows]

    def all_cmr(self):
        return sorted(n for n, r in self.rows.items()
                      if re.match(r"^[cmr]\d", n) and r["arch"] != "arm64" and int(float(r["vcpus"])) <= 64
                      and float(r["accel_count"] or 0) == 0)

    def gpus(self, families):
        out = []
        for n, r in self.rows.items():
            c = float(r["accel_count"] or 0)
            if n.split(".")[0] in families and r["accel_maker"] == "NVIDIA" and c >= 1 and c == int(c):
                out.append(n)
        return sorted(out)

    def type(self, name, rng, spot=False, rich=False, zones=None):
        r = self.rows[name]
        vcpus, mib, pods = int(float(r["vcpus"])), int(float(r["memory_gib"]) * 1024), int(r["max_pods"])
        cap = {"cpu": str(vcpus), "memory": f"{mib - math.ceil(mib * 0.075)}Mi", "pods": str(pods)}
        arch = "arm64" if r["arch"] == "arm64" else "amd64"
        labels = {ARCH: arch, OS: "linux"}
        gpus = int(float(r["accel_count"] or 0)) if r["accel_maker"] == "NVIDIA" else 0
        if gpus:
            cap[GPU] = str(gpus)
            labels[AWS + "gpu-name"] = r["accel_name"].lower()
        if rich:
            fam, size = name.split(".")
            labels |= {AWS + "family": fam, AWS + "category": fam[0], AWS + "size": size, AWS + "cpu": str(vcpus)}
        od = float(r["on_demand_usd_h"])
        offerings = []
        for z in zones or ZONES:
            offerings.append({"zone": z, "capacityType": "on-demand", "price": od})
        if spot and r["spot_min_usd_h"]:
            sp = [float(r["spot_min_usd_h"]), float(r["spot_median_usd_h"]), float(r["spot_max_usd_h"])]
            rng.shuffle(sp)
            offerings += [{"zone": z, "capacityType": "spot", "price": p} for z, p in zip(ZONES, sp)
                          if z in (zones or ZONES)]
        return {"name": name, "capacity": cap, "overhead": overhead(vcpus, pods), "labels": labels,
                "offerings": offerings}

    def types(self, names, rng, **kw):
        return [self.type(n, rng, **kw) for n in names]


def mi(q):
    return int(q[:-2])


def allocatable(t):
    out = dict(t["capacity"])
    out["cpu"] = f"{int(t['capacity']['cpu']) * 1000 - int(t['overhead']['cpu'][:-1])}m"
    out["memory"] = f"{mi(t['capacity']['memory']) - mi(t['overhead']['memory'])}Mi"
    return out


# ---------------------------------------------------------------- pods

def pod(app, cpu_m, mem_mi, extra=None, labels=None, ports=None, gpus=0, **spec):
    req = {"cpu": f"{cpu_m}m", "memory": f"{mem_mi}Mi"}
    res = {"requests": req}
    if gpus:
        req[GPU] = str(gpus)
        res["limits"] = {GPU: str(gpus)}
    c = {"name": "app", "image": "app", "resources": res}
    if ports:
        c["ports"] = ports
    return {"metadata": {"generateName": app + "-", "labels": {"app": app} | (labels or {})},
            "spec": {"containers": [c]} | spec | (extra or {})}


def shape(rng, max_cpu=4000):
    cpu = rng.choice([c for c in (100, 200, 250, 300, 500, 750, 1000, 1500, 2000, 3000, 4000, 6000, 8000)
                      if c <= max_cpu])
    per_core = rng.choice([1024, 1536, 2048, 3072, 4096, 6144, 8192])
    mem = max(64, cpu * per_core // 1000 // 64 * 64)
    return cpu, mem


def split(rng, total, k):
    """total pods over k templates, each at least one."""
    k = min(k, total)
    w = [rng.random() + 0.2 for _ in range(k)]
    out = [max(1, int(total * x / sum(w))) for x in w]
    out[0] += total - sum(out)
    while out[0] < 1:
        j = out.index(max(out))
        out[j] -= 1
        out[0] += 1
    return out


def plain(rng, total, k, prefix="p", max_cpu=4000, **kw):
    return [{"count": n, "pod": pod(f"{prefix}{i}", *shape(rng, max_cpu), **kw)}
            for i, n in enumerate(split(rng, total, k))] if total else []


def sel(app):
    return {"matchLabels": {"app": app}}


def spread(key, app, skew=1, hard=True, **kw):
    return {"maxSkew": skew, "topologyKey": key, "whenUnsatisfiable": "DoNotSchedule" if hard else "ScheduleAnyway",
            "labelSelector": sel(app)} | kw


def pod_affinity(kind, key, app, preferred=None):
    term = {"labelSelector": sel(app), "topologyKey": key}
    if preferred:
        return {kind: {"preferredDuringSchedulingIgnoredDuringExecution": [{"weight": preferred, "podAffinityTerm": term}]}}
    return {kind: {"requiredDuringSchedulingIgnoredDuringExecution": [term]}}


def node_affinity(*terms):
    return {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {
        "nodeSelectorTerms": [{"matchExpressions": t} for t in terms]}}}


def expr(key, op, *values):
    e = {"key": key, "operator": op}
    return e | {"values": list(values)} if values else e


# ---------------------------------------------------------------- node pools, nodes

def nodepool(name="default", arch=("amd64",), cts=("on-demand",), weight=None, limits=None, extra=(), taints=None,
             labels=None):
    np = {"name": name, "requirements": [expr(CT, "In", *cts), expr(OS, "In", "linux")] + list(extra)}
    if arch:
        np["requirements"].append(expr(ARCH, "In", *arch))
    for k, v in (("weight", weight), ("limits", limits), ("taints", taints), ("labels", labels)):
        if v:
            np[k] = v
    return np


def node(name, t, zone, pool="default", taints=None, ct="on-demand", labels=None, managed=True):
    lab = dict(t["labels"]) | {TYPE: t["name"], ZONE: zone, HOST: name, CT: ct} | (labels or {})
    if managed:
        lab |= {POOL: pool, "karpenter.sh/registered": "true", "karpenter.sh/initialized": "true"}
    else:
        lab.pop(CT)
    n = {"metadata": {"name": name, "labels": lab}, "spec": {},
         "status": {"capacity": dict(t["capacity"]), "allocatable": allocatable(t)}}
    if taints:
        n["spec"]["taints"] = taints
    return n


def bind(p, name, node_name, daemonset=None):
    p = json.loads(json.dumps(p))
    p["metadata"].pop("generateName", None)
    p["metadata"]["name"] = name
    p["metadata"]["namespace"] = "kube-system" if daemonset else "default"
    p["spec"]["nodeName"] = node_name
    if daemonset:
        p["metadata"]["ownerReferences"] = [{"apiVersion": "apps/v1", "kind": "DaemonSet", "name": daemonset,
                                             "uid": "ds-" + daemonset, "controller": True}]
    return p


# ---------------------------------------------------------------- families

def medium(cat, rng, k=6, sizes=SIZES):
    fams = ["m5", "c5", "r5", "m6i", "c6i", "r6i", "m6a", "c6a", "r6a", "m7i", "c7i", "r7i", "m7a", "c7a", "r7a"]
    return cat.names(sorted(rng.sample(fams, k)), sizes)


def f_resources_10(cat, rng, i, n):
    pods = plain(rng, n, rng.randint(2, 7), max_cpu=8000 if i % 2 else 4000)
    if i % 4 == 3:  # larger than any type
        pods.append({"count": 2, "pod": pod("toobig", 20000, 4096)})
    return {"nodePools": [nodepool()], "instanceTypes": cat.types(TEN, rng), "pods": pods}


def f_resources_all(cat, rng, i, n):
    return {"nodePools": [nodepool()], "instanceTypes": cat.types(cat.all_cmr(), rng),
            "pods": plain(rng, n, rng.randint(3, 10), max_cpu=8000)}


def f_zone_spread(cat, rng, i, n):
    names = medium(cat, rng, 5)
    types = cat.types(names, rng)
    if i % 4 == 2:  # a third of the types is missing in one zone
        types = [cat.type(x, rng, zones=ZONES[:2] if rng.random() < 0.35 else None) for x in names]
    apps = rng.randint(1, 4)
    rest = n // 3 if i % 2 else 0
    pods = []
    for a, c in enumerate(split(rng, n - rest, apps)):
        app = f"s{a}"
        kw = {"minDomains": 3} if i % 6 == 5 else {}
        skew = 1 if i % 3 else rng.choice([1, 1, 2])
        extra = {"topologySpreadConstraints": [spread(ZONE, app, skew, hard=kw != {} or not (i % 5 == 4 and a == 0), **kw)]}
        if i % 4 == 3 and a == 0:
            extra["affinity"] = node_affinity([expr(ZONE, "In", *ZONES[:2])])
        pods.append({"count": c, "pod": pod(app, *shape(rng, 4000), extra=extra)})
    pods += plain(rng, rest, rng.randint(1, 3))
    return {"nodePools": [nodepool()], "instanceTypes": types, "pods": pods}


def f_host(cat, rng, i, n):
    types = cat.types(medium(cat, rng, 5), rng)
    anti = min(max(3, n // 4), 150)
    spr = min(max(3, n // 4), 300)
    pods = []
    kind = i % 4
    if kind in (0, 2, 3):
        pods.append({"count": anti, "pod": pod("anti", *shape(rng, 2000),
                                               extra={"affinity": pod_affinity("podAntiAffinity", HOST, "anti")})})
    if kind in (1, 2, 3):
        pods.append({"count": spr, "pod": pod("spr", *shape(rng, 1000), extra={
            "topologySpreadConstraints": [spread(HOST, "spr", rng.choice([1, 2, 3]))]})})
    if kind == 2:  # avoids another app
        pods.append({"count": max(2, anti // 3), "pod": pod("avoid", *shape(rng, 1000), extra={
            "affinity": pod_affinity("podAntiAffinity", HOST, "anti")})})
    if kind == 3:
        pods.append({"count": max(2, anti // 3), "pod": pod("soft", *shape(rng, 1000), extra={
            "affinity": pod_affinity("podAntiAffinity", HOST, "soft", preferred=10)})})
    rest = max(1, n - sum(p["count"] for p in pods))
    pods += plain(rng, rest, rng.randint(1, 4))
    return {"nodePools": [nodepool()], "instanceTypes": types, "pods": pods}


def f_zone_affinity(cat, rng, i, n):
    types = cat.types(medium(cat, rng, 5), rng)
    rest = n // 3
    pods = []
    for a, c in enumerate(split(rng, n - rest, rng.randint(1, 5))):
        app = f"a{a}"
        pods.append({"count": c, "pod": pod(app, *shape(rng, 3000),
                                            extra={"affinity": pod_affinity("podAffinity", ZONE, app)})})
    if i % 3 == 1:  # follows another app into its zone; the leader is fixed to one zone
        pods.append({"count": 3, "pod": pod("lead", *shape(rng, 1000), extra={"nodeSelector": {ZONE: ZONES[1]}})})
        pods.append({"count": max(2, n // 10), "pod": pod("follow", *shape(rng, 1000), extra={
            "affinity": pod_affinity("podAffinity", ZONE, "lead")})})
    if i % 3 == 2:  # a small group on one node
        pods.append({"count": 4, "pod": pod("near", 500, 1024, extra={
            "affinity": pod_affinity("podAffinity", HOST, "near")})})
    pods += plain(rng, rest, rng.randint(1, 3))
    return {"nodePools": [nodepool()], "instanceTypes": types, "pods": pods}


def f_node_affinity(cat, rng, i, n):
    names = medium(cat, rng, 4) + cat.names(rng.sample(["m6g", "c6g", "r6g", "m7g", "c7g", "r7g"], 3))
    types = cat.types(names, rng, rich=True)
    if i % 3 == 1:
        types = [cat.type(x, rng, rich=True, zones=rng.sample(ZONES, 2) if rng.random() < 0.3 else None) for x in names]
    fams = sorted({x.split(".")[0] for x in names})
    big = sorted(x for x in names if x.endswith("4xlarge"))
    opts = [
        lambda: {"nodeSelector": {ARCH: "arm64"}},
        lambda: {"nodeSelector": {ARCH: "amd64"}},
        lambda: {"nodeSelector": {ZONE: rng.choice(ZONES)}},
        lambda: {"nodeSelector": {TYPE: rng.choice(big)}},
        lambda: {"affinity": node_affinity([expr(TYPE, "In", *rng.sample(names, 4))])},
        lambda: {"affinity": node_affinity([expr(AWS + "family", "In", *rng.sample(fams, 2))])},
        lambda: {"affinity": node_affinity([expr(AWS + "cpu", "Gt", "7")])},
        lambda: {"affinity": node_affinity([expr(AWS + "category", "NotIn", "r")])},
        lambda: {"affinity": node_affinity([expr(ZONE, "NotIn", rng.choice(ZONES))])},
        # the first term cannot be met, the second can
        lambda: {"affinity": node_affinity([expr(TYPE, "In", "none.large")], [expr(ARCH, "In", "arm64")])},
        lambda: {"affinity": {"nodeAffinity": {"preferredDuringSchedulingIgnoredDuringExecution": [
            {"weight": 50, "preference": {"matchExpressions": [expr(AWS + "family", "In", rng.choice(fams))]}},
            {"weight": 10, "preference": {"matchExpressions": [expr(ZONE, "In", rng.choice(ZONES))]}}]}}},
        lambda: {},
    ]
    chosen = rng.sample(opts, rng.randint(3, 6))
    if i % 4 == 2:  # a label that nothing has
        chosen.append(lambda: {"nodeSelector": {"example.com/disk": "nvme"}})
    pods = [{"count": c, "pod": pod(f"n{a}", *shape(rng, 4000), extra=o())}
            for a, (o, c) in enumerate(zip(chosen, split(rng, n, len(chosen))))]
    return {"nodePools": [nodepool(arch=("amd64", "arm64"))], "instanceTypes": types, "pods": pods}


def f_two_pools(cat, rng, i, n):
    names = medium(cat, rng, 5)
    types = cat.types(names, rng, rich=True)
    fams = sorted({x.split(".")[0] for x in names})
    taint = {"key": "dedicated", "value": "batch", "effect": "NoSchedule"}
    tol = {"tolerations": [{"key": "dedicated", "operator": "Equal", "value": "batch", "effect": "NoSchedule"}]}
    kind = i % 4
    if kind == 0:  # a heavy pool with a few families, a general one behind it
        pools = [nodepool("general", weight=10), nodepool("preferred", weight=90, extra=[expr(AWS + "family", "In", *fams[:2]), expr(AWS + "cpu", "Lt", "9")])]
        pods = plain(rng, n, rng.randint(2, 5), max_cpu=8000) + [{"count": 2, "pod": pod("wide", 12000, 16384)}]
    elif kind == 1:  # a tainted pool that comes first
        pools = [nodepool("batch", weight=50, taints=[taint], extra=[expr(AWS + "family", "In", *fams[-2:])]),
                 nodepool("web", weight=None)]
        k = n // 2
        pods = plain(rng, n - k, rng.randint(1, 3), "web") + [
            {"count": c, "pod": pod(f"batch{a}", *shape(rng), extra=dict(tol))} for a, c in enumerate(split(rng, max(1, k), rng.randint(1, 3)))]
    elif kind == 2:  # custom labels; same weight (none): the later name goes first
        pools = [nodepool("alpha", labels={"team": "a"}), nodepool("beta", labels={"team": "b"}, extra=[expr(AWS + "family", "In", *fams[:3])])]
        pods = []
        for a, (t, c) in enumerate(zip(["a", "b", None], split(rng, n, 3))):
            pods.append({"count": c, "pod": pod(f"t{a}", *shape(rng), extra={"nodeSelector": {"team": t}} if t else {})})
        pods.append({"count": 1, "pod": pod("nobody", 500, 512, extra={"nodeSelector": {"team": "z"}})})
    else:  # a soft taint on the heavier pool
        pools = [nodepool("soft", weight=80, taints=[taint | {"effect": "PreferNoSchedule"}], extra=[expr(AWS + "family", "In", *fams[:3])]),
                 nodepool("plain", weight=20, extra=[expr(AWS + "family", "In", *fams[3:]), expr(AWS + "cpu", "Lt", "9")])]
        k = n // 3
        pods = plain(rng, n - k, rng.randint(1, 3), "p") + [{"count": 2, "pod": pod("wide", 12000, 8192)}] + [
            {"count": c, "pod": pod(f"tol{a}", *shape(rng), extra={"tolerations": [{"key": "dedicated", "operator": "Exists"}]})}
            for a, c in enumerate(split(rng, max(1, k), 2))]
    return {"nodePools": pools, "instanceTypes": types, "pods": pods}


def daemons(rng, i):
    all_taints = {"tolerations": [{"operator": "Exists"}]}
    ds = [{"pod": pod("cni", 50, 64, extra=dict(all_taints))}, {"pod": pod("proxy", 100, 128, extra=dict(all_taints))}]
    if i % 2:
        ds.append({"pod": pod("logs", rng.choice([200, 300, 500]), rng.choice([256, 512, 1024]))})
    return ds


def f_daemonsets(cat, rng, i, n):
    names = medium(cat, rng, 4) + cat.names(["m6g", "c7g"])
    types = cat.types(names, rng, rich=True)
    ds = daemons(rng, i)
    if i % 4 >= 2:
        ds.append({"pod": pod("bigonly", 400, 1024, extra={"affinity": node_affinity([expr(AWS + "cpu", "Gt", "15")])})})
    if i % 4 == 3:
        ds.append({"pod": pod("armonly", 250, 512, extra={"nodeSelector": {ARCH: "arm64"}})})
    pools = [nodepool(arch=("amd64", "arm64"))]
    pods = plain(rng, n, rng.randint(2, 6), max_cpu=3000)
    if i % 3 == 2:
        taint = {"key": "dedicated", "value": "batch", "effect": "NoSchedule"}
        pools.append(nodepool("batch", arch=("amd64",), weight=50, taints=[taint]))
        for p in pods[::2]:
            p["pod"]["spec"]["tolerations"] = [{"key": "dedicated", "operator": "Exists"}]
    return {"nodePools": pools, "instanceTypes": types, "pods": pods, "daemonSets": ds}


def f_existing(cat, rng, i, n):
    names = medium(cat, rng, 4)
    types = cat.types(names, rng)
    by = {t["name"]: t for t in types}
    count = max(3, min(40, n // 6))
    ds = daemons(rng, i) if i % 2 else []
    nodes, running = [], []
    for k in range(count):
        t = by[rng.choice([x for x in names if x.split(".")[1] in ("xlarge", "2xlarge", "4xlarge")])]
        name = f"node-{k:03d}"
        managed = not (i % 3 == 2 and k % 4 == 0)
        taints = [{"key": "dedicated", "value": "db", "effect": "NoSchedule"}] if i % 4 == 1 and k % 5 == 4 else None
        nodes.append(node(name, t, ZONES[k % 3], taints=taints, managed=managed))
        a = allocatable(t)
        free_cpu, free_mem = int(a["cpu"][:-1]), mi(a["memory"])
        for d in ds:
            app = d["pod"]["metadata"]["labels"]["app"]
            # on some nodes the daemon pod is not there yet: its room is kept free
            if (k + len(app)) % 3 or not i % 4 == 3:
                running.append(bind(d["pod"], f"{app}-{k:03d}", name, app))
            r = d["pod"]["spec"]["containers"][0]["resources"]["requests"]
            free_cpu -= int(r["cpu"][:-1])
            free_mem -= mi(r["memory"])
        target = rng.choice([0.2, 0.5, 0.7, 0.9]) * free_cpu
        used, j = 0, 0
        while used < target and j < 12:
            cpu, mem = shape(rng, 2000)
            if used + cpu > free_cpu or mem > free_mem:
                break
            running.append(bind(pod("old", cpu, mem), f"old-{k:03d}-{j}", name))
            used, free_mem, j = used + cpu, free_mem - mem, j + 1
    pods = plain(rng, n - n // 3, rng.randint(2, 4), max_cpu=3000)
    kind = i % 4
    rest = max(1, n // 3)
    if kind == 0:
        pods += plain(rng, rest, 2, "q")
    elif kind == 1:
        pods.append({"count": rest, "pod": pod("z", *shape(rng, 2000), extra={"topologySpreadConstraints": [spread(ZONE, "z")]})})
        for k in range(3):
            running.append(bind(pod("z", 100, 128), f"z-{k}", nodes[0]["metadata"]["name"]))
    elif kind == 2:
        pods.append({"count": min(rest, 80), "pod": pod("h", *shape(rng, 1000), extra={"affinity": pod_affinity("podAntiAffinity", HOST, "h")})})
        running.append(bind(pod("h", 100, 128, extra={"affinity": pod_affinity("podAntiAffinity", HOST, "h")}), "h-0", nodes[1]["metadata"]["name"]))
    else:
        pods.append({"count": rest, "pod": pod("a", *shape(rng, 2000), extra={"affinity": pod_affinity("podAffinity", ZONE, "a")})})
        running.append(bind(pod("a", 100, 128), "a-0", nodes[2]["metadata"]["name"]))
    out = {"nodePools": [nodepool()], "instanceTypes": types, "pods": pods, "nodes": nodes, "running": running}
    if ds:
        out["daemonSets"] = ds
    return out


def f_gpu(cat, rng, i, n):
    gpu_names = cat.gpus({"g4dn", "g5", "g6"} if i % 2 else {"g4dn", "g6"})
    types = cat.types(medium(cat, rng, 4) + gpu_names, rng)
    gpu_pods = max(2, min(120, n // 4))
    taint = {"key": GPU, "value": "true", "effect": "NoSchedule"}
    tol = {"tolerations": [{"key": GPU, "operator": "Exists", "effect": "NoSchedule"}]}
    kind = i % 3
    pools = [nodepool()]
    if kind == 1:
        pools = [nodepool("cpu", extra=[expr(AWS + "gpu-name", "DoesNotExist")]),
                 nodepool("gpu", taints=[taint], extra=[expr(AWS + "gpu-name", "Exists")])]
    pods = []
    for a, c in enumerate(split(rng, gpu_pods, rng.randint(1, 3))):
        g = rng.choice([1, 1, 1, 2, 4])
        cpu, mem = rng.choice([1000, 2000, 3000, 4000]) * (1 if g < 4 else 2), rng.choice([4096, 8192, 12288]) * g
        extra = dict(tol) if kind else {}
        if kind == 2 and a == 0:
            extra["nodeSelector"] = {AWS + "gpu-name": "t4"}
            g, mem, cpu = 1, 6144, 2000
        pods.append({"count": c, "pod": pod(f"gpu{a}", cpu, mem, gpus=g, extra=extra)})
    pods += plain(rng, max(1, n - gpu_pods), rng.randint(1, 4), "cpu")
    return {"nodePools": pools, "instanceTypes": types, "pods": pods}


def f_spot(cat, rng, i, n):
    types = cat.types(medium(cat, rng, 6), rng, spot=True)
    kind = i % 4
    pools = [nodepool(cts=("spot", "on-demand"))]
    pods = plain(rng, n, rng.randint(2, 5))
    if kind == 1:
        for p in pods[::2]:
            p["pod"]["spec"]["nodeSelector"] = {CT: "on-demand"}
    elif kind == 2:
        pools = [nodepool("spot", cts=("spot",), weight=60), nodepool("steady", cts=("on-demand",))]
        for p in pods[::3]:
            p["pod"]["spec"]["nodeSelector"] = {CT: "on-demand"}
    elif kind == 3:
        app = pods[0]["pod"]["metadata"]["labels"]["app"]
        pods[0]["pod"]["spec"]["topologySpreadConstraints"] = [spread(CT, app)]
        if len(pods) > 1:
            app = pods[1]["pod"]["metadata"]["labels"]["app"]
            pods[1]["pod"]["spec"]["topologySpreadConstraints"] = [spread(ZONE, app)]
    return {"nodePools": pools, "instanceTypes": types, "pods": pods}


def port(p, proto="TCP", ip=None):
    d = {"containerPort": p, "hostPort": p, "protocol": proto}
    return d | {"hostIP": ip} if ip else d


def f_ports(cat, rng, i, n):
    types = cat.types(medium(cat, rng, 5), rng)
    k = min(max(3, n // 5), 120)
    pods = [{"count": k, "pod": pod("web", *shape(rng, 1000), ports=[port(8080)])}]
    kind = i % 4
    if kind == 1:
        pods.append({"count": max(2, k // 2), "pod": pod("udp", *shape(rng, 1000), ports=[port(8080, "UDP")])})
    if kind == 2:
        pods.append({"count": max(2, k // 2), "pod": pod("two", *shape(rng, 1000), ports=[port(8080), port(9090)])})
        pods.append({"count": max(2, k // 2), "pod": pod("nine", *shape(rng, 1000), ports=[port(9090)])})
    if kind == 3:
        pods.append({"count": max(2, k // 3), "pod": pod("lo", *shape(rng, 1000), ports=[port(7070, ip="127.0.0.1")])})
        pods.append({"count": max(2, k // 3), "pod": pod("ten", *shape(rng, 1000), ports=[port(7070, ip="10.1.1.1")])})
        pods.append({"count": max(2, k // 4), "pod": pod("any", *shape(rng, 1000), ports=[port(7070)])})
    rest = max(1, n - sum(p["count"] for p in pods))
    pods += plain(rng, rest, rng.randint(1, 4))
    out = {"nodePools": [nodepool()], "instanceTypes": types, "pods": pods}
    if i % 3 == 2:
        out["daemonSets"] = [{"pod": pod("agent", 100, 128, ports=[port(9100)])}]
        pods.append({"count": 2, "pod": pod("blocked", 200, 256, ports=[port(9100)])})
    return out


def f_limits(cat, rng, i, n):
    names = medium(cat, rng, 4)
    types = cat.types(names, rng, rich=True)
    pods = plain(rng, n, rng.randint(2, 5))
    if i % 8 == 4:  # one per node: small nodes are bought, large ones are reserved against the limit
        pods = plain(rng, 10, 1, max_cpu=500) + [{"count": rng.randint(20, min(90, n)), "pod": pod("anti", *shape(rng, 2000), extra={
            "affinity": pod_affinity("podAntiAffinity", HOST, "anti")})}]
    cpu = sum(p["count"] * int(p["pod"]["spec"]["containers"][0]["resources"]["requests"]["cpu"][:-1]) for p in pods) / 1000
    mem = sum(p["count"] * mi(p["pod"]["spec"]["containers"][0]["resources"]["requests"]["memory"]) for p in pods)
    kind = i % 4
    out = {"instanceTypes": types, "pods": pods}
    if kind == 0:  # about half of what is asked for
        out["nodePools"] = [nodepool(limits={"cpu": str(max(4, int(cpu * (rng.choice([1.2, 1.6, 2.0]) if i % 8 == 4 else 0.5))))})]
    elif kind == 1:  # a limited first choice and an open second one
        fams = sorted({x.split(".")[0] for x in names})
        out["nodePools"] = [nodepool("first", weight=90, limits={"cpu": str(max(4, int(cpu * 0.4)))}, extra=[expr(AWS + "family", "In", *fams[:2])]),
                            nodepool("second", weight=10)]
    elif kind == 2:  # generous cpu, tight memory
        out["nodePools"] = [nodepool(limits={"cpu": str(int(cpu * 4) + 8), "memory": f"{int(mem * 0.6) + 8192}Mi"})]
    else:  # existing nodes already use part of the limit
        by = {t["name"]: t for t in types}
        t = by[next(x for x in names if x.endswith(".2xlarge"))]
        k = max(1, min(20, int(cpu / 16)))
        out["nodes"] = [node(f"node-{j:03d}", t, ZONES[j % 3]) for j in range(k)]
        out["running"] = [bind(pod("old", 6000, 2048), f"old-{j:03d}", f"node-{j:03d}") for j in range(k)]
        out["nodePools"] = [nodepool(limits={"cpu": str(max(8 * k + 8, int(cpu * 0.8) + 8 * k))})]
    return out


FAMILIES = [
    ("resources-10", f_resources_10), ("resources-all", f_resources_all), ("zone-spread", f_zone_spread),
    ("host-spread-anti-affinity", f_host), ("zone-affinity", f_zone_affinity), ("node-affinity", f_node_affinity),
    ("two-node-pools", f_two_pools), ("daemonsets", f_daemonsets), ("existing-nodes", f_existing), ("gpu", f_gpu),
    ("spot", f_spot), ("host-ports", f_ports), ("limits", f_limits),
]


def instances(args):
    cat = Catalog(args.prices)
    for fam, fn in FAMILIES:
        if args.family and fam != args.family:
            continue
        for i, n in enumerate(POD_COUNTS):
            rng = random.Random(f"{args.seed}/{fam}/{i}")
            inst = {"name": f"{fam}-s{i:02d}", "family": fam} | fn(cat, rng, i, n)
            print(json.dumps(inst, separators=(",", ":")))


def merge(args):
    ans = {}
    with open(args.answers) as f:
        for line in f:
            a = json.loads(line)
            ans[a["name"]] = a["expect"]
    n = 0
    with open(args.instances) as f, gzip.GzipFile(args.out, "wb", 9, mtime=0) as out:
        for line in f:
            inst = json.loads(line)
            inst["expect"] = ans[inst["name"]]
            out.write((json.dumps(inst, separators=(",", ":")) + "\n").encode())
            n += 1
    print(n, "instances written", file=sys.stderr)


# ---------------------------------------------------------------- check

def milli(q):
    return int(q[:-1]) if q.endswith("m") else int(q) * 1000


def requests(p):
    r = p["spec"]["containers"][0]["resources"]["requests"]
    return milli(r["cpu"]), mi(r["memory"]), int(r.get(GPU, 0)), 1


def room(t):
    a = allocatable(t)
    return milli(a["cpu"]), mi(a["memory"]), int(a.get(GPU, 0)), int(a["pods"])


def check(args):
    """Every answer must place every pod once, fit, cost what it says and obey the simple rules; in the families with
    resources only, the number of candidates and the price are recomputed."""
    bad, stats = 0, {}

    def fail(inst, *why):
        nonlocal bad
        bad += 1
        print("BAD", inst["name"], *why)

    with gzip.open(args.file, "rt") as f:
        for line in f:
            inst = json.loads(line)
            e, types = inst["expect"], {t["name"]: t for t in inst["instanceTypes"]}
            seen, cost = [0] * len(inst["pods"]), 0.0
            daemon = [requests(d["pod"]) for d in inst.get("daemonSets", []) if d["pod"]["metadata"]["labels"]["app"] in ("cni", "proxy")]
            zones = {}
            for c in e["claims"]:
                t, k = types[c["instanceType"]], c["count"]
                cost += c["price"] * k
                for z in c.get("zones", [c["zone"]]):
                    if {"zone": z, "capacityType": c["capacityType"], "price": c["price"]} not in t["offerings"]:
                        fail(inst, "no such offering", c)
                load = [sum(x) for x in zip((0, 0, 0, 0), *[[v * n for v in requests(inst["pods"][int(i)]["pod"])] for i, n in c["pods"].items()], *daemon)]
                if any(x > y for x, y in zip(load, room(t))):
                    fail(inst, "does not fit", c, load, room(t))
                for i, n in c["pods"].items():
                    seen[int(i)] += n * k
                    spec = inst["pods"][int(i)]["pod"]["spec"]
                    app = inst["pods"][int(i)]["pod"]["metadata"]["labels"]["app"]
                    if n > 1 and spec["containers"][0].get("ports"):
                        fail(inst, "host port twice", c)
                    anti = spec.get("affinity", {}).get("podAntiAffinity", {}).get("requiredDuringSchedulingIgnoredDuringExecution", [])
                    if n > 1 and any(x["labelSelector"]["matchLabels"]["app"] == app for x in anti):
                        fail(inst, "anti-affinity", c)
                    for x in spec.get("topologySpreadConstraints", []):
                        if x["topologyKey"] == HOST and n > x["maxSkew"]:
                            fail(inst, "host spread", c)
                        if x["topologyKey"] == ZONE and x["whenUnsatisfiable"] == "DoNotSchedule":
                            if "zones" in c:
                                fail(inst, "zone not fixed", c)
                            zones.setdefault(int(i), {}).setdefault(c["zone"], 0)
                            zones[int(i)][c["zone"]] += n * k
                    for key, v in spec.get("nodeSelector", {}).items():
                        have = dict(t["labels"]) | {TYPE: t["name"], ZONE: c["zone"], CT: c["capacityType"]}
                        have |= next(p for p in inst["nodePools"] if p["name"] == c["nodePool"]).get("labels", {})
                        if have.get(key) != v:
                            fail(inst, "node selector", key, v, c)
                if inst["family"] in ("resources-10", "resources-all"):
                    fit = [x for x in inst["instanceTypes"] if all(a <= b for a, b in zip(load, room(x)))]
                    low = min(o["price"] for x in fit for o in x["offerings"])
                    same = sorted(x["name"] for x in fit if x["offerings"][0]["price"] == low)
                    if (len(fit), low, same) != (c["candidates"], c["price"], [c["instanceType"]] + c.get("equalTypes", [])):
                        fail(inst, "candidates", len(fit), low, same, c)
            for i, by in zones.items():
                tsc = next(x for x in inst["pods"][i]["pod"]["spec"]["topologySpreadConstraints"] if x["topologyKey"] == ZONE)
                usable = ZONES[:2] if "affinity" in inst["pods"][i]["pod"]["spec"] else ZONES
                counts = [by.get(z, 0) for z in usable]
                if not inst.get("nodes") and max(counts) - min(counts) > tsc["maxSkew"]:
                    fail(inst, "zone skew", i, by)
            for on in e["onExisting"].values():
                for i, n in on.items():
                    seen[int(i)] += n
            for i, n in e["unscheduled"].items():
                seen[int(i)] += n
            if seen != [p["count"] for p in inst["pods"]]:
                fail(inst, "pods lost", seen)
            if abs(cost - e["costPerHour"]) > 1e-5 or not e["costPerHourMin"] - 1e-9 <= e["costPerHour"] <= e["costPerHourMax"] + 1e-9:
                fail(inst, "cost", cost, e["costPerHour"])
            if sum(c["count"] for c in e["claims"]) != e["nodes"]:
                fail(inst, "nodes")
            s = stats.setdefault(inst["family"], {"instances": 0, "pods": 0, "nodes": 0, "cost": 0.0, "unscheduled": 0, "onExisting": 0, "same": {}, "maxSpreadPct": 0.0})
            s["instances"] += 1
            s["pods"] += sum(p["count"] for p in inst["pods"])
            s["nodes"] += e["nodes"]
            s["cost"] = round(s["cost"] + e["costPerHour"], 4)
            s["unscheduled"] += sum(e["unscheduled"].values())
            s["onExisting"] += sum(sum(o.values()) for o in e["onExisting"].values())
            s["same"][e["same"]] = s["same"].get(e["same"], 0) + 1
            if e["costPerHourMin"]:
                s["maxSpreadPct"] = max(s["maxSpreadPct"], round(100 * (e["costPerHourMax"] / e["costPerHourMin"] - 1), 2))
    for fam, s in stats.items():
        print(f"{fam:26}", json.dumps(s))
    print(sum(s["instances"] for s in stats.values()), "instances,", bad, "violations")
    sys.exit(bad > 0)


# ---------------------------------------------------------------- bench

def bench(args):
    """The shape of Karpenter's own scheduling benchmark: a fifth each plain, zonal spread, hostname spread, zonal
    self-affinity and hostname self-anti-affinity; types of 1..N cpus, 2 GiB and 10 pods per cpu."""
    rng = random.Random(args.seed)
    types = []
    for i in range(args.types):
        cpu, gib = i + 1, 2 * (i + 1)
        price = 0.1 * cpu + 0.1 * gib * 2**30 / 1e9
        large = cpu > 4 and gib > 8
        labels = {ARCH: "amd64", OS: "linux", "size": "large" if large else "small", "integer": str(cpu)}
        if large:
            labels["special"] = "optional"
        zones = ["test-zone-1", "test-zone-2", "test-zone-3"]
        types.append({"name": f"fake-it-{i}", "capacity": {"cpu": str(cpu), "memory": f"{gib}Gi", "pods": str(10 * cpu)},
                      "overhead": {"cpu": "100m", "memory": "10Mi"}, "labels": labels,
                      "offerings": [{"zone": z, "capacityType": "spot", "price": price} for z in zones[:2]] +
                                   [{"zone": z, "capacityType": "on-demand", "price": price} for z in zones]})

    letter = lambda: rng.choice("abcdefg")
    size = lambda: (rng.choice([100, 250, 500, 1000, 1500]), rng.choice([100, 256, 512, 1024, 2048, 4096]))
    groups = {}

    def add(kind, labels, extra):
        cpu, mem = size()
        p = pod(kind, cpu, mem, extra=extra)
        p["metadata"]["labels"] = labels
        key = json.dumps(p, sort_keys=True)
        groups.setdefault(key, {"count": 0, "pod": p})["count"] += 1

    def spread_on(key):
        return {"topologySpreadConstraints": [{"maxSkew": 1, "topologyKey": key, "whenUnsatisfiable": "DoNotSchedule",
                                               "labelSelector": {"matchLabels": {"my-label": letter()}}}]}

    def term(kind, key, labels):
        return {"affinity": {kind: {"requiredDuringSchedulingIgnoredDuringExecution": [
            {"labelSelector": {"matchLabels": labels}, "topologyKey": key}]}}}

    fifth = args.pods // 5
    for _ in range(args.pods - 4 * fifth):
        add("plain", {"my-label": letter()}, {})
    for _ in range(fifth):
        add("zone-spread", {"my-label": letter()}, spread_on(ZONE))
    for _ in range(fifth):
        add("host-spread", {"my-label": letter()}, spread_on(HOST))
    for _ in range(fifth):
        lab = {"my-affinity": letter()}
        add("zone-affinity", lab, term("podAffinity", ZONE, lab))
    for _ in range(fifth):
        lab = {"app": "nginx"}
        add("host-anti", lab, term("podAntiAffinity", HOST, lab))
    inst = {"name": f"bench-{args.pods}", "family": "bench",
            "nodePools": [{"name": "default", "limits": {"cpu": "10000000", "memory": "10000000Gi"}}],
            "instanceTypes": types, "pods": list(groups.values())}
    print(json.dumps(inst, separators=(",", ":")))


def main():
    ap = argparse.ArgumentParser()
    sub = ap.add_subparsers(required=True)
    a = sub.add_parser("instances")
    a.add_argument("--prices", default=PRICES)
    a.add_argument("--seed", type=int, default=VECTOR_SEED)
    a.add_argument("--family")
    a.set_defaults(fn=instances)
    a = sub.add_parser("merge")
    a.add_argument("instances")
    a.add_argument("answers")
    a.add_argument("out")
    a.set_defaults(fn=merge)
    a = sub.add_parser("check")
    a.add_argument("file")
    a.set_defaults(fn=check)
    a = sub.add_parser("bench")
    a.add_argument("--pods", type=int, required=True)
    a.add_argument("--types", type=int, default=400)
    a.add_argument("--seed", type=int, default=42)
    a.set_defaults(fn=bench)
    args = ap.parse_args()
    args.fn(args)


if __name__ == "__main__":
    main()
