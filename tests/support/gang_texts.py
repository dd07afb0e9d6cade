"""Gangs from manifests as users write them."""

import json
from textwrap import dedent

from tutti.kube.gangs.reader import read_gangs
from tutti.kube.reading.decode import decode_objects
from tutti.kube.reading.parsed_file import parse_file
from tutti.kube.reading.sources import Source


def pod(name, *, labels=None, annotations=None, **spec):
    """The manifest of a pod."""
    metadata = {"name": name, "labels": labels, "annotations": annotations}
    made = {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": {"containers": [{"name": "c"}]} | spec}
    return json.dumps(made)


def pods(name, count, **fields):
    """The manifests of pods that differ only in their number."""
    return [pod(f"{name}-{number}", **fields) for number in range(count)]


def objects(*texts):
    """What manifests hold."""
    text = "\n---\n".join(dedent(text) for text in texts)
    return decode_objects(parse_file(Source("gangs.yaml", text.encode()))).objects


def gang(*texts):
    """The only gang of manifests."""
    (found,) = read_gangs(objects(*texts)).values()
    return found


def problem(*texts):
    """What is wrong with the only gang of manifests."""
    return gang(*texts).problem
