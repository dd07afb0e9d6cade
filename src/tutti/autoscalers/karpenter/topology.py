"""All topology groups of one pass: the domains that they allow for a pod, and the counts of placed pods.

Contract: a host is an existing node (by number) or a claim (numbered after the nodes), with a set of possible values
for each topology label. `matching` returns the groups that constrain a pod, `add_requirements` the values that these
groups allow, and `record` and `record_on_node` count a placed pod. A pod on a host with several possible values is not
counted, except for anti-affinity, which counts the pod in every possible domain.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

from tutti.autoscalers.karpenter.existingnode import ExistingNodes
from tutti.autoscalers.karpenter.nodeclaim import NodeClaim
from tutti.autoscalers.karpenter.nodeclaimtemplate import NodeClaimTemplate
from tutti.autoscalers.karpenter.poddata import PendingPodClass, PodClasses, PodData
from tutti.autoscalers.karpenter.state import RunningPod
from tutti.autoscalers.karpenter.topologydomaingroup import TopologyDomainGroup
from tutti.autoscalers.karpenter.topologygroup import TopologyGroup, TopologyGroupKey, TopologyType, key_of_term
from tutti.autoscalers.karpenter.topologynodefilter import TopologyNodeFilter
from tutti.cluster.columns import Bools
from tutti.cluster.counters.pod_terms import PodTerm, Scope
from tutti.kube.workloads.owners import is_active

_ALL_NODES = TopologyNodeFilter()
_Groups = list[tuple[TopologyGroup, bool]]
"""Groups, each with whether its selector matches the pod itself."""


class MatchingTopologies(NamedTuple):
    """The groups that constrain a pod."""

    hosts: _Groups
    """The groups over kubernetes.io/hostname."""
    domains: list[tuple[str, _Groups]]
    """The groups over other labels, by label."""

    def allow_host(self, host: int) -> bool:
        """Return whether the groups over hosts allow the pod on a host."""
        return all(group.allows_host(host, self_selecting=own) for group, own in self.hosts)

    def is_host_closed(self, host: int) -> bool:
        """Return whether a host can never take such a pod again.

        Counts only grow, so only a pod affinity that rejects the host now may allow it later.
        """
        return any(
            not group.allows_host(host, self_selecting=own)
            for group, own in self.hosts
            if group.type is not TopologyType.POD_AFFINITY
        )


class Topology:
    """See the module's contract."""

    def __init__(
        self,
        templates: Sequence[NodeClaimTemplate],
        nodes: ExistingNodes,
        *,
        running: Sequence[RunningPod],
        classes: PodClasses,
        namespaces: Mapping[str, Mapping[str, str]],
    ) -> None:
        self._templates, self._nodes, self._namespaces = templates, nodes, namespaces
        self._groups: dict[TopologyGroupKey, TopologyGroup] = {}
        self._inverse: dict[TopologyGroupKey, TopologyGroup] = {}
        """Groups that count the owners of an anti-affinity term, and repel the pods that the term selects."""
        self._domains: dict[str, TopologyDomainGroup] = {}
        self._selecting: dict[tuple[int, bool], tuple[int, list[TopologyGroup]]] = {}
        self._owned: dict[int, tuple[list[TopologyGroup], list[TopologyGroup]]] = {}
        self._matching: dict[int, tuple[int, MatchingTopologies]] = {}
        self._required: dict[tuple[int, str, bool], int] = {}
        self._counted: dict[tuple[TopologyNodeFilter, int], Bools] = {}
        self._running: dict[tuple[str, frozenset[tuple[str, str]]], Counter[int]] = {}
        """The number of running pods on each node, by namespace and labels."""
        for pod, spec, name in running:
            node = nodes.number_of.get(name)
            if node is None or not is_active(pod):
                continue
            key = pod.metadata.namespace or "default", classes.watched_labels(pod)
            self._running.setdefault(key, Counter())[node] += 1
            affinity = pod.spec.affinity
            if affinity is not None and affinity.pod_anti_affinity is not None:
                for term in spec.anti_affinity:
                    self._count_on_node(self._inverse_group(term), node)

    # Groups -----------------------------------------------------------------------------------------------------------

    def domains(self, label: str) -> TopologyDomainGroup:
        """Return the domains of a label."""
        known = self._domains.get(label)
        if known is None:
            known = self._domains[label] = TopologyDomainGroup(label, self._templates, self._nodes.rows)
        return known

    @property
    def most_domains(self) -> int:
        """The number of domains of the label with the most domains, hostname excluded."""
        return max((len(each.values) for each in self._domains.values()), default=0)

    def update(self, data: PodData) -> tuple[list[TopologyGroup], list[TopologyGroup]]:
        """Return the groups that constrain a pod by its own rules, and the groups by which it repels other pods.

        Groups that do not exist yet are created, and count the pods that are running.
        """
        known = self._owned.get(id(data))
        if known is None:
            groups = [self._group(self._spread_key(data, index)) for index in range(len(data.preferences.spread))]
            groups += [self._group(key_of_term(TopologyType.POD_AFFINITY, term)) for term in data.pod_affinity]
            groups += [
                self._group(key_of_term(TopologyType.POD_ANTI_AFFINITY, term)) for term in data.pod_anti_affinity
            ]
            inverse = [self._inverse_group(term) for term in data.pod_class.spec.anti_affinity]
            known = self._owned[id(data)] = groups, inverse
        return known

    def _spread_key(self, data: PodData, index: int) -> TopologyGroupKey:
        constraint, spec = data.preferences.spread[index], data.pod_class.spec
        node_filter = TopologyNodeFilter(
            labels=spec.node_labels if constraint.honor_affinity else (),
            terms=(data.preferences.required_node_terms or None) if constraint.honor_affinity else None,
            tolerations=data.tolerations if constraint.honor_taints else None,
        )
        return TopologyGroupKey(
            TopologyType.SPREAD,
            constraint.topology_key,
            Scope(frozenset((spec.namespace,))),
            constraint.selector,
            constraint.max_skew,
            constraint.min_domains,
            node_filter,
        )

    def _group(self, key: TopologyGroupKey) -> TopologyGroup:
        group = self._groups.get(key)
        if group is None:
            group = self._groups[key] = self._new_group(key)
            counted = key.node_filter.matching(self._nodes.rows).tolist()
            for (namespace, labels), nodes in self._running.items():
                if self._in_scope(key.scope, namespace) and key.selector.matches(dict(labels)):
                    for node, number in nodes.items():
                        if counted[node]:
                            for _ in range(number):
                                self._count_on_node(group, node)
        return group

    def _inverse_group(self, term: PodTerm) -> TopologyGroup:
        key = key_of_term(TopologyType.POD_ANTI_AFFINITY, term)
        group = self._inverse.get(key)
        if group is None:
            group = self._inverse[key] = self._new_group(key)
        return group

    def _new_group(self, key: TopologyGroupKey) -> TopologyGroup:
        """Create a group with every domain that exists or can be bought."""
        group = TopologyGroup(key)
        if group.by_host:
            return group
        domains = self.domains(key.label)
        group.counts = [0] * len(domains.values)
        tolerations = key.node_filter.tolerations
        for number, template in enumerate(self._templates):
            if tolerations is None or template.rows.tolerated(tolerations, hard_only=False).any():
                group.known |= domains.of_template[number]
        counted = key.node_filter.matching(self._nodes.rows).tolist()
        for node, domain in enumerate(domains.node_column):
            if domain >= 0 and counted[node]:
                group.known |= 1 << domain
        return group

    def _count_on_node(self, group: TopologyGroup, node: int) -> None:
        if group.by_host:
            group.record_host(node)
        elif (domain := self.domains(group.label).node_column[node]) >= 0:
            group.record(1 << domain)

    # Which groups constrain a pod -------------------------------------------------------------------------------------

    def matching(self, data: PodData) -> MatchingTopologies:
        """Return the groups that constrain a pod: those of its own rules, and those that repel it."""
        owned, _ = self.update(data)
        inverse = self._groups_selecting(data.pod_class, inverse=True)
        size, matching = self._matching.get(id(data), (-1, MatchingTopologies([], [])))
        if size == len(inverse):
            return matching
        groups = [(group, self._selects(group, data.pod_class)) for group in owned]
        groups += [(group, True) for group in inverse]
        domains: dict[str, _Groups] = {}
        for group, own in groups:
            if not group.by_host:
                domains.setdefault(group.label, []).append((group, own))
        matching = MatchingTopologies([each for each in groups if each[0].by_host], list(domains.items()))
        self._matching[id(data)] = len(inverse), matching
        return matching

    def _groups_selecting(self, pod_class: PendingPodClass, *, inverse: bool) -> list[TopologyGroup]:
        """Return the groups that count pods of a class, or (`inverse`) the groups that repel them."""
        groups = self._inverse if inverse else self._groups
        size, selecting = self._selecting.get((id(pod_class), inverse), (-1, []))
        if size != len(groups):
            selecting = [group for group in groups.values() if self._selects(group, pod_class)]
            self._selecting[id(pod_class), inverse] = len(groups), selecting
        return selecting

    def _selects(self, group: TopologyGroup, pod_class: PendingPodClass) -> bool:
        in_scope = self._in_scope(group.key.scope, pod_class.namespace)
        return in_scope and group.key.selector.matches(pod_class.labels)

    def _in_scope(self, scope: Scope, namespace: str) -> bool:
        return scope.contains_existing(namespace, self._namespaces.get(namespace))

    # Which domains the groups allow -----------------------------------------------------------------------------------

    def add_requirements(self, data: PodData, matching: MatchingTopologies, domains: Iterable[int]) -> list[int] | None:
        """Return, for each label of `matching.domains`, the domains of a host that all groups allow.

        `domains` has the host's set of values for each label. The result is None if a label has no allowed domain.
        """
        allowed_domains = []
        for (label, groups), of_host in zip(matching.domains, domains, strict=True):
            pod = self._required_domains(data, label, strict=True)
            node = allowed = of_host & self._required_domains(data, label, strict=False)
            for group, own in groups:
                allowed &= group.get(pod, node, self_selecting=own)
            if not allowed:
                return None
            allowed_domains.append(allowed)
        return allowed_domains

    def of_template(self, label: str, template: int) -> int:
        """Return the set of values of a label over the offerings of a template."""
        return self.domains(label).of_template[template]

    def of_node(self, label: str, node: int) -> int:
        """Return the set with the value of a label of an existing node; 0 if the node has no such label."""
        domain = self.domains(label).node_column[node]
        return 1 << domain if domain >= 0 else 0

    def _required_domains(self, data: PodData, label: str, *, strict: bool) -> int:
        known = self._required.get((id(data), label, strict))
        if known is None:
            requirements = data.requirements_on(label, strict=strict)
            known = self._required[id(data), label, strict] = self.domains(label).meeting(requirements)
        return known

    # Counting ---------------------------------------------------------------------------------------------------------

    def register(self, claim: NodeClaim) -> None:
        """Set the domains of a new claim for the labels that have at most one value in its template."""
        for label in self._domains:
            values = self.of_template(label, claim.template)
            if values & (values - 1) == 0:
                claim.bits[label] = values

    def record(self, claim: NodeClaim, data: PodData, *, matching: MatchingTopologies, narrowed: Sequence[int]) -> None:
        """Narrow the domains of a claim to those of its last pod, and count the pod."""
        for label in self._domains:
            if (required := self._required_domains(data, label, strict=False)) != -1:
                claim.bits[label] = claim.bits.get(label, self.of_template(label, claim.template)) & required
        for (label, _), allowed in zip(matching.domains, narrowed, strict=True):
            claim.bits[label] = allowed
        self._record(data, host=claim.host, bits=claim.bits, claim=claim)

    def record_on_node(self, node: int, data: PodData) -> None:
        """Count a pod on an existing node."""
        self._record(data, host=node, bits={label: self.of_node(label, node) for label in self._domains})

    def _record(self, data: PodData, *, host: int, bits: Mapping[str, int], claim: NodeClaim | None = None) -> None:
        for group in self._groups_selecting(data.pod_class, inverse=False):
            node_filter = group.key.node_filter
            if node_filter != _ALL_NODES and not self._counts(node_filter, host, claim):
                continue
            allowed = bits.get(group.label, 0)
            if group.by_host:
                group.record_host(host)
            elif group.type is TopologyType.POD_ANTI_AFFINITY or allowed & (allowed - 1) == 0:
                group.record(allowed)
        for group in self.update(data)[1]:
            if group.by_host:
                group.record_host(host)
            else:
                group.record(bits.get(group.label, 0))

    def _counts(self, node_filter: TopologyNodeFilter, host: int, claim: NodeClaim | None) -> bool:
        """Return whether a spread constraint counts pods on a host: a claim, or the existing node `host`."""
        template = -1 if claim is None else claim.template
        mask = self._counted.get((node_filter, template))
        if mask is None:
            rows = self._nodes.rows if claim is None else self._templates[claim.template].rows
            mask = self._counted[node_filter, template] = node_filter.matching(rows)
        return bool(mask[host] if claim is None else mask[claim.rows].any())
