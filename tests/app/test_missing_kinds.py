"""A dump that lacks kinds works, and a note names each missing kind that affects the answer."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tests.support.command_line import Run
from tests.support.documents import Document, node, pod

Tutti = Callable[..., Run]
Write = Callable[..., str]
CLAIMED = [{"name": "data", "persistentVolumeClaim": {"claimName": "c"}}]


def notes(run: Run) -> list[str]:
    return run.err.splitlines()


def claim(name: str = "c", **spec: Any) -> Document:
    metadata = {"name": name, "namespace": "default", "uid": name}
    return {"apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": metadata, "spec": spec}


def test_no_note_without_relevant_missing_kinds(tutti: Tutti, write: Write) -> None:
    assert notes(tutti("schedule", "-f", write(node("a"), pod("p"), pod("q", on="a", volumes=CLAIMED)))) == []


def test_owners_and_services(tutti: Tutti, write: Write) -> None:
    pods = [pod(f"p-{number}", labels={"app": "x"}, owner=("ReplicaSet", "r")) for number in range(3)]
    assert notes(tutti("schedule", "-f", write(node("a"), *pods))) == [
        "note: there are no ReplicaSets in the input: 3 pods of such owners may be spread differently",
        "note: there are no Services in the input: 3 pods may be spread differently",
    ]


def test_namespaces(tutti: Tutti, write: Write) -> None:
    term = {"topologyKey": "zone", "namespaceSelector": {"matchLabels": {"team": "x"}}, "labelSelector": {}}
    affinity = {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [term]}}
    objects = [node("a"), pod("p", affinity=affinity)]
    prefix = "note: there are no Namespaces in the input: "
    assert notes(tutti("schedule", "-f", write(*objects))) == [f"{prefix}1 pod selects namespaces by label"]
    objects.append(pod("q", affinity=affinity))
    assert notes(tutti("schedule", "-f", write(*objects))) == [f"{prefix}2 pods select namespaces by label"]


def test_pods_are_placed_without_regard_to_missing_volumes(tutti: Tutti, write: Write) -> None:
    path = write(node("a"), pod("p", volumes=CLAIMED))
    for command in (("schedule",), ("explain", "p")):
        run = tutti(*command, "-f", path)
        assert notes(run) == [
            "note: there are no PersistentVolumeClaims in the input: 1 pod placed without regard to some volumes"
        ]
    assert tutti("schedule", "-f", path, "-o", "name").out == "pod/p node/a\n"
    bound = write(node("a"), claim(volumeName="v"), pod("p", volumes=CLAIMED))
    run = tutti("schedule", "-f", bound, "-o", "name")
    assert run.out == "pod/p node/a\n"
    assert any("no PersistentVolumes in the input" in line for line in notes(run))
    waiting = write(node("a"), claim(storageClassName="fast"), pod("p", volumes=CLAIMED))
    run = tutti("schedule", "-f", waiting, "-o", "name")
    assert run.out == "pod/p node/a\n"
    assert any("no StorageClasses in the input" in line for line in notes(run))


def test_a_claim_that_is_missing_among_others_refuses_the_pod(tutti: Tutti, write: Write) -> None:
    run = tutti("schedule", "-f", write(node("a"), claim("other"), pod("p", volumes=CLAIMED)))
    assert 'persistentvolumeclaim "c" not found' in run.out


def test_classes_of_new_pods(tutti: Tutti, write: Write) -> None:
    new = pod("p", priorityClassName="urgent", runtimeClassName="sandbox")
    del new["metadata"]["uid"], new["status"]
    kinds = [line.split()[4] for line in notes(tutti("schedule", "-f", write(node("a"), new)))]
    assert kinds == ["PriorityClasses", "RuntimeClasses"]


def test_ignored_kinds_are_counted(tutti: Tutti, write: Write) -> None:
    other = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "x"}}
    assert notes(tutti("schedule", "-f", write(node("a"), other, other, pod("p")))) == [
        "note: ignored objects of kinds that do not affect scheduling: 2 ConfigMap"
    ]
