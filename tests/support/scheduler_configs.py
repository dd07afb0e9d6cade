"""KubeSchedulerConfigurations, made and loaded for tests."""

import json

from tutti.engine.config.profile_loader import load_profile


def config(*profiles, **fields):
    made = {"apiVersion": "kubescheduler.config.k8s.io/v1", "kind": "KubeSchedulerConfiguration"}
    return made | ({"profiles": list(profiles)} if profiles else {}) | fields


def profile(**points):
    """A profile whose points are given as name=([what is on], [what is off]); a pair is a name and its weight."""

    def refs(names):
        return [{"name": n} if isinstance(n, str) else {"name": n[0], "weight": n[1]} for n in names]

    return {"plugins": {point: {"enabled": refs(on), "disabled": refs(off)} for point, (on, off) in points.items()}}


def args(name, **fields):
    return {"pluginConfig": [{"name": name, "args": fields}]}


def load(tree, **options):
    return load_profile(json.dumps(tree).encode(), file="scheduler.json", **options)
