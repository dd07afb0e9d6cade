"""Manifests of gangs as users write them, and the gangs that they describe."""

import json
from textwrap import dedent

from tests.support.documents import new_pod
from tutti.kube.gangs.reader import read_gangs
from tutti.kube.reading.decode import decode_objects
from tutti.kube.reading.parsed_file import parse_file
from tutti.kube.reading.sources import Source


def pod(name, *, labels=None, annotations=None, **spec):
    """The manifest of a pod."""
    return json.dumps(new_pod(name, metadata={"labels": labels, "annotations": annotations}, **spec))


def pods(name, count, **fields):
    """The manifests of pods that differ only in their number."""
    return [pod(f"{name}-{number}", **fields) for number in range(count)]


def objects(*texts):
    """The objects of manifests."""
    text = "\n---\n".join(dedent(text) for text in texts)
    return decode_objects(parse_file(Source("gangs.yaml", text.encode()))).objects


def gang(*texts):
    """The only gang of manifests."""
    (found,) = read_gangs(objects(*texts)).values()
    return found


def problem(*texts):
    """The problem of the only gang of manifests."""
    return gang(*texts).problem
