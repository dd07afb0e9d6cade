"""The requests on pods that are more than a change of an object: bindings and evictions, as kube-apiserver checks them.

Contract: functions on `MemoryObjects`; an `RefusedError` leaves everything as it was. Like the real server, a binding
looks neither for the node nor for room on it.
"""

from __future__ import annotations

from tests.support.memory_objects import Document, MemoryObjects, RefusedError, merged
from tutti.kube.times import timestamp


def bind(objects: MemoryObjects, key: str, body: Document) -> None:
    """Bind a pod to a node."""
    pod = objects.get("Pod", key)
    metadata, spec = pod["metadata"], pod.get("spec") or {}
    target, wanted = body.get("target") or {}, (body.get("metadata") or {}).get("uid")
    if target.get("kind", "Node") != "Node" or not target.get("name"):
        raise RefusedError(422, "Invalid", "Binding is invalid: target.name: Required value")
    problem = ""
    if wanted and wanted != metadata["uid"]:
        problem = f"Precondition failed: UID in precondition: {wanted}, UID in object meta: {metadata['uid']}"
    elif metadata.get("deletionTimestamp"):
        problem = f"pod {metadata['name']} is being deleted, cannot be assigned to a host"
    elif spec.get("nodeName"):
        problem = f'pod {metadata["name"]} is already assigned to node "{spec["nodeName"]}"'
    elif spec.get("schedulingGates"):
        problem = f"pod {metadata['name']} has non-empty .spec.schedulingGates"
    if problem:
        text = f'Operation cannot be fulfilled on pods/binding "{metadata["name"]}": {problem}'
        raise RefusedError(409, "Conflict", text)
    scheduled = {"type": "PodScheduled", "status": "True", "lastTransitionTime": timestamp(objects.now())}
    change = {
        "spec": {"nodeName": target["name"]},
        "status": {"nominatedNodeName": None, "conditions": [scheduled]},
    }
    known = [each for each in (pod.get("status") or {}).get("conditions") or () if each["type"] != "PodScheduled"]
    pod = {**pod, "status": {**(pod.get("status") or {}), "conditions": known}}
    objects.replace("Pod", key, merged(pod, change, merges_lists=True))


def evict(objects: MemoryObjects, key: str, body: Document, *, is_dry_run: bool) -> None:
    """Delete a pod if its disruption budgets allow that."""
    pod = objects.get("Pod", key)
    options = body.get("deleteOptions") or {}
    labels = pod["metadata"].get("labels") or {}
    budgets = []
    for budget in objects.all("PodDisruptionBudget", pod["metadata"]["namespace"]):
        selector = (budget["spec"].get("selector") or {}).get("matchLabels") or {}
        if selector.items() <= labels.items():
            budgets.append(budget)
    for budget in budgets:
        if not budget["status"].get("disruptionsAllowed"):
            name = budget["metadata"]["name"]
            text = f"Cannot evict pod as it would violate the pod's disruption budget {name}."
            raise RefusedError(429, "TooManyRequests", text, causes=("DisruptionBudget",))
    if is_dry_run or "All" in (options.get("dryRun") or ()):
        return
    condition = {  # whatever the pod said before
        "type": "DisruptionTarget",
        "status": "True",
        "reason": "EvictionByEvictionAPI",
        "message": "Eviction API: evicting",
        "lastTransitionTime": timestamp(objects.now()),
    }
    if (options.get("preconditions") or {}).get("uid") in (None, pod["metadata"]["uid"]):
        objects.patch("Pod", key, {"status": {"conditions": [condition]}}, merges_lists=True)
    objects.delete("Pod", key, options)
    for budget in budgets:
        status = {"disruptionsAllowed": budget["status"]["disruptionsAllowed"] - 1}
        metadata = budget["metadata"]
        key = f"{metadata['namespace']}/{metadata['name']}"
        objects.patch("PodDisruptionBudget", key, {"status": status})
