"""Checks of pod specs: quantities, selectors, operators, policies.

Contract: a check raises `InputError` with the full path of the field, and changes nothing. A path is a tuple of parts
(an integer is a list index) that is joined only for an error, because joining it for each pod would be slow.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from tutti.exceptions import InputError
from tutti.kube.objects import (
    Affinity,
    Container,
    LabelSelector,
    NodeSelectorTerm,
    PodAffinity,
    PodSpec,
    Quantities,
    ResourceRequirements,
    Toleration,
    TopologySpreadConstraint,
)
from tutti.kube.quantity import parse_nano
from tutti.kube.selectors import parse_label_selector
from tutti.kube.times import micros

EFFECTS = frozenset(("NoSchedule", "PreferNoSchedule", "NoExecute"))
"""The effects of taints."""

_OPERATORS = frozenset(("In", "NotIn", "Exists", "DoesNotExist", "Gt", "Lt"))
_TOLERATION_OPERATORS = frozenset((None, "", "Exists", "Equal", "Lt", "Gt"))
_TOLERATED_EFFECTS = EFFECTS | {None, ""}
_POLICIES = frozenset((None, "Honor", "Ignore"))
_UNSATISFIABLE = frozenset(("DoNotSchedule", "ScheduleAnyway"))
_REQUIRED = ".requiredDuringSchedulingIgnoredDuringExecution"
_PREFERRED = ".preferredDuringSchedulingIgnoredDuringExecution"


def check_pod_spec(spec: PodSpec, path: str) -> None:
    """Check the spec of a pod or of a pod template."""
    if not spec.containers:
        raise InputError("at least one container is required", field=f"{path}.containers")
    _containers(spec.containers, (path, ".containers"))
    if spec.init_containers:
        _containers(spec.init_containers, (path, ".initContainers"))
    if spec.resources is not None:
        check_resources(spec.resources, (path, ".resources"))
    if spec.overhead:
        check_quantities(spec.overhead, (path, ".overhead"))
    if spec.affinity is not None:
        _affinity(spec.affinity, path)
    for index, toleration in enumerate(spec.tolerations or ()):
        _toleration(toleration, (path, ".tolerations", index))
    for index, constraint in enumerate(spec.topology_spread_constraints or ()):
        _spread(constraint, (path, ".topologySpreadConstraints", index))


def _containers(containers: Iterable[Container], path: tuple[Any, ...]) -> None:
    for index, container in enumerate(containers):
        if container.resources is not None:
            check_resources(container.resources, (*path, index, ".resources"))


def check_resources(resources: ResourceRequirements, path: tuple[Any, ...]) -> None:
    """Check requests and limits."""
    if resources.requests:
        check_quantities(resources.requests, (*path, ".requests"))
    if resources.limits:
        check_quantities(resources.limits, (*path, ".limits"))


def check_quantities(quantities: Quantities, path: tuple[Any, ...]) -> None:
    """Check that every quantity is valid and not negative."""
    for name, quantity in quantities.items():
        try:
            if parse_nano(quantity) >= 0:
                continue
            problem = f'"{quantity}" is negative'
        except InputError as error:
            problem = error.problem
        raise field_error(problem, (*path, ".", name))


def _affinity(affinity: Affinity, path: str) -> None:
    if (node_affinity := affinity.node_affinity) is not None:
        base = (path, ".affinity.nodeAffinity")
        terms = node_affinity.required.node_selector_terms if node_affinity.required is not None else None
        for index, term in enumerate(terms or ()):
            _node_term(term, (*base, _REQUIRED, ".nodeSelectorTerms", index))
        for index, preferred in enumerate(node_affinity.preferred or ()):
            _node_term(preferred.preference, (*base, _PREFERRED, index, ".preference"))
    if affinity.pod_affinity is not None:
        _pod_affinity(affinity.pod_affinity, (path, ".affinity.podAffinity"))
    if affinity.pod_anti_affinity is not None:
        _pod_affinity(affinity.pod_anti_affinity, (path, ".affinity.podAntiAffinity"))


def _pod_affinity(affinity: PodAffinity, path: tuple[Any, ...]) -> None:
    terms = [((*path, _REQUIRED, index), term) for index, term in enumerate(affinity.required or ())]
    terms += [
        ((*path, _PREFERRED, index, ".podAffinityTerm"), preferred.pod_affinity_term)
        for index, preferred in enumerate(affinity.preferred or ())
    ]
    for term_path, term in terms:
        if not term.topology_key:
            raise field_error("a label is required", (*term_path, ".topologyKey"))
        if term.label_selector is not None:
            check_selector(term.label_selector, (*term_path, ".labelSelector"))
        if term.namespace_selector is not None:
            check_selector(term.namespace_selector, (*term_path, ".namespaceSelector"))


def _node_term(term: NodeSelectorTerm, path: tuple[Any, ...]) -> None:
    for field, requirements in ((".matchExpressions", term.match_expressions), (".matchFields", term.match_fields)):
        for index, requirement in enumerate(requirements or ()):
            if requirement.operator not in _OPERATORS:
                problem = (
                    f'"{requirement.operator}" is not an operator (want In, NotIn, Exists, DoesNotExist, Gt or Lt)'
                )
                raise field_error(problem, (*path, field, index, ".operator"))


def check_selector(selector: LabelSelector, path: tuple[Any, ...]) -> None:
    """Check the expressions of a label selector."""
    if selector.match_expressions:
        try:
            parse_label_selector(selector)
        except InputError as error:
            raise field_error(error.problem, path) from None


def _toleration(toleration: Toleration, path: tuple[Any, ...]) -> None:
    if toleration.operator not in _TOLERATION_OPERATORS:
        problem = f'"{toleration.operator}" is not an operator (want Equal, Exists, Lt or Gt)'
        raise field_error(problem, (*path, ".operator"))
    if toleration.effect not in _TOLERATED_EFFECTS:
        raise field_error(f'"{toleration.effect}" is not an effect', (*path, ".effect"))
    if not toleration.key and toleration.operator != "Exists":
        raise field_error("must be Exists when there is no key", (*path, ".operator"))


def _spread(constraint: TopologySpreadConstraint, path: tuple[Any, ...]) -> None:
    if constraint.max_skew <= 0:
        raise field_error("must be greater than 0", (*path, ".maxSkew"))
    if not constraint.topology_key:
        raise field_error("a label is required", (*path, ".topologyKey"))
    if constraint.when_unsatisfiable not in _UNSATISFIABLE:
        problem = f'"{constraint.when_unsatisfiable}" is neither DoNotSchedule nor ScheduleAnyway'
        raise field_error(problem, (*path, ".whenUnsatisfiable"))
    for field, policy in (
        (".nodeAffinityPolicy", constraint.node_affinity_policy),
        (".nodeTaintsPolicy", constraint.node_taints_policy),
    ):
        if policy not in _POLICIES:
            raise field_error(f'"{policy}" is neither Honor nor Ignore', (*path, field))
    if constraint.label_selector is not None:
        check_selector(constraint.label_selector, (*path, ".labelSelector"))


def check_time(text: str, path: str) -> None:
    """Check a timestamp."""
    try:
        micros(text)
    except InputError as error:
        raise InputError(error.problem, field=path) from None


def field_error(problem: str, path: Iterable[Any]) -> InputError:
    """Return an `InputError` for the field at a path; integers in the path are list indexes."""
    return InputError(problem, field="".join(f"[{part}]" if isinstance(part, int) else part for part in path))
