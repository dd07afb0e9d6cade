"""Names in messages: a pod's message is read by the users of its namespace, who must not learn names of others.

Contract: pure; keys are namespace/name.
"""

from __future__ import annotations

from collections.abc import Iterable


def is_visible(key: str, *, reader: str) -> bool:
    """Return whether the users of a pod or gang, the reader, may learn the name of another one."""
    return key.partition("/")[0] == reader.partition("/")[0]


def visible_pods(pods: Iterable[str], *, reader: str) -> str:
    """Return a short list of pods; of pods in other namespaces only their number."""
    pods = list(pods)
    named = [pod for pod in pods if is_visible(pod, reader=reader)]
    unnamed = len(pods) - len(named)
    texts = [", ".join(named[:3])] if named else []
    if len(named) > 3:
        texts.append(f"{len(named) - 3} more")
    if unnamed:
        texts.append("a pod of another namespace" if unnamed == 1 else f"{unnamed} pods of other namespaces")
    return " and ".join(texts)


def visible_preemptor(preemptor: str, *, reader: str) -> str:
    """Return the name of a pod or gang for which the reader loses its room."""
    return preemptor if is_visible(preemptor, reader=reader) else "a pod or gang of another namespace"
