"""Pending pods as Karpenter's scheduler reads them.

Contract: pods that the scheduler cannot tell apart are one `PendingPodClass`. A class has one `PodData` per step of
relaxation: in the first step every preference is a requirement; every further step drops one preference
(`preferences`). Steps are built when they are needed.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

import numpy as np

from tutti.autoscalers.karpenter.hostportusage import Port
from tutti.autoscalers.karpenter.label_rows import LabelRows
from tutti.autoscalers.karpenter.nodeclaimtemplate import NodeClaimTemplate
from tutti.autoscalers.karpenter.preferences import Preferences
from tutti.autoscalers.karpenter.state import ProvisionablePod
from tutti.cluster.columns import Bools, Ints
from tutti.cluster.spec_classes import SpecClass
from tutti.kube.objects import Pod, Toleration
from tutti.kube.selectors import Requirement

_TOLERATE_PREFER_NO_SCHEDULE = Toleration(operator="Exists", effect="PreferNoSchedule")


class PodData:
    """The requirements of the pods of a class at one step of relaxation."""

    def __init__(self, pod_class: PendingPodClass, preferences: Preferences) -> None:
        spec = pod_class.spec
        self.pod_class, self.preferences = pod_class, preferences
        soft = (_TOLERATE_PREFER_NO_SCHEDULE,) if preferences.tolerates_prefer_no_schedule else ()
        self.tolerations = (*spec.tolerations, *soft)
        terms, preferred = preferences.required_node_terms[:1], preferences.node_affinity[:1]
        self.strict_requirements = (*spec.node_labels, *(terms[0].labels if terms else ()))
        self.requirements = (*self.strict_requirements, *(preferred[0].labels if preferred else ()))
        self.name_requirements = terms[0].fields if terms else ()
        """Requirements on the node's name, which no new node meets."""
        self.is_impossible = any(term.is_invalid for term in (*terms, *preferred))
        self.pod_affinity = (*spec.affinity, *preferences.pod_affinity)
        self.pod_anti_affinity = (*spec.anti_affinity, *preferences.pod_anti_affinity)
        self.closed_claims: set[int] = set()
        """The numbers of the claims that can never take such a pod again."""
        self._template_masks: dict[int, Bools] = {}
        self.nodes: Ints | None = None
        """The existing nodes that may still have room (`ExistingNodes.with_room_for`); None before the first try."""

    def requirements_on(self, key: str, *, strict: bool) -> list[Requirement]:
        """Return the requirements on one node label; `strict` leaves out the preferred terms."""
        return [each for each in (self.strict_requirements if strict else self.requirements) if each.key == key]

    def template_mask(self, number: int, template: NodeClaimTemplate) -> Bools:
        """Return the offerings of a template whose labels, taints and daemon ports allow the pods."""
        known = self._template_masks.get(number)
        if known is None:
            if self.is_impossible or self.name_requirements:
                known = np.zeros(len(template.offerings), dtype=bool)
            else:
                rows = template.rows
                known = rows.meeting_all(self.requirements) & rows.tolerated(self.tolerations, hard_only=False)
                known &= template.without_port_conflict(self.pod_class.spec.ports)
            self._template_masks[number] = known
        return known

    def node_mask(self, rows: LabelRows, names: Sequence[str]) -> Bools:
        """Return the existing nodes whose labels and taints allow the pods."""
        if self.is_impossible:
            return np.zeros(rows.count, dtype=bool)
        mask = rows.meeting_all(self.requirements) & rows.tolerated(self.tolerations, hard_only=False)
        if self.name_requirements:
            allowed = (all(each.holds(name) for each in self.name_requirements) for name in names)
            mask &= np.fromiter(allowed, bool, rows.count)
        return mask


class PendingPodClass:
    """Pending pods that the scheduler cannot tell apart."""

    def __init__(self, spec: SpecClass, labels: Mapping[str, str], resources: Sequence[str]) -> None:
        self.spec, self.labels, self.namespace = spec, labels, spec.namespace
        amounts = [(resource, spec.requests.get(name, 0)) for resource, name in enumerate(resources)]
        self.requests: list[tuple[int, int]] = [(resource, amount) for resource, amount in amounts if amount > 0]
        """The requested resources, as (number of the resource, amount above 0)."""
        self.column: Ints = np.array([amount for _, amount in amounts], dtype=np.int64)[:, None]
        """The amounts of all resources, as a column."""
        self._steps = [PodData(self, Preferences.of(spec, labels))]
        if spec.node_terms == ():  # there are required terms, and no node can match any of them
            self._steps[0].is_impossible = True
        self.failed_at = -1
        """How many pods had been placed when a pod of the class last failed."""

    @property
    def first(self) -> PodData:
        """The requirements with all preferences."""
        return self._steps[0]

    def step(self, number: int, *, has_soft_taints: bool) -> PodData | None:
        """Return the requirements after `number` relaxations; None when no preference is left to drop."""
        while len(self._steps) <= number:
            relaxed = self._steps[-1].preferences.relax(has_soft_taints=has_soft_taints)
            if relaxed is None:
                return None
            self._steps.append(PodData(self, relaxed))
        return self._steps[number]

    @property
    def ports(self) -> tuple[Port, ...]:
        """The host ports that a pod uses."""
        return self.spec.ports


class PodClasses:
    """The pending pods by class."""

    def __init__(self, pods: Sequence[ProvisionablePod], watched: Iterable[str]) -> None:
        """Sort pods into classes; `watched` are the pod labels that the rules of running pods select."""
        specs = {each.spec.number: each.spec for each in pods}.values()
        self._watched = frozenset(watched).union(*(each.watched_keys for each in specs))
        self.resources = sorted({name for each in specs for name in each.requests} | {"cpu", "memory", "pods"})
        classes: dict[tuple[int, frozenset[tuple[str, str]]], PendingPodClass] = {}
        self.of_pod: list[PendingPodClass] = []
        """The class of each pod."""
        for pod, spec in pods:
            labels = self.watched_labels(pod)
            pod_class = classes.get((spec.number, labels))
            if pod_class is None:
                pod_class = classes[spec.number, labels] = PendingPodClass(spec, dict(labels), self.resources)
            self.of_pod.append(pod_class)
        self.all = list(classes.values())

    def watched_labels(self, pod: Pod) -> frozenset[tuple[str, str]]:
        """Return the labels of a pod whose keys some selector uses."""
        labels = pod.metadata.labels
        if not labels:
            return frozenset()
        return frozenset((key, labels[key]) for key in self._watched & labels.keys())
