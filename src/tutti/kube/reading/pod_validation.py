"""Checks of what a pod asks for: quantities, selectors, operators, policies.

Contract: a check raises `InputError` whose field is the whole path, and changes nothing. Paths are tuples that are put
together only for a fault; a number in them is a place in a list.
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
"""What a taint may do."""

_OPERATORS = frozenset(("In", "NotIn", "Exists", "DoesNotExist", "Gt", "Lt"))
_TOLERATION_OPERATORS = frozenset((None, "", "Exists", "Equal", "Lt", "Gt"))
_TOLERATED_EFFECTS = EFFECTS | {None, ""}
_POLICIES = frozenset((None, "Honor", "Ignore"))
_UNSATISFIABLE = frozenset(("DoNotSchedule", "ScheduleAnyway"))
_REQUIRED = ".requiredDuringSchedulingIgnoredDuringExecution"
_PREFERRED = ".preferredDuringSchedulingIgnoredDuringExecution"


def check_pod_spec(spec: PodSpec, path: str) -> None:
    """Check what a pod, or the template of one, asks for."""
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
    for place, toleration in enumerate(spec.tolerations or ()):
        _toleration(toleration, (path, ".tolerations", place))
    for place, constraint in enumerate(spec.topology_spread_constraints or ()):
        _spread(constraint, (path, ".topologySpreadConstraints", place))


def _containers(containers: Iterable[Container], path: tuple[Any, ...]) -> None:
    for place, container in enumerate(containers):
        if container.resources is not None:
            check_resources(container.resources, (*path, place, ".resources"))


def check_resources(resources: ResourceRequirements, path: tuple[Any, ...]) -> None:
    """Check requests and limits."""
    if resources.requests:
        check_quantities(resources.requests, (*path, ".requests"))
    if resources.limits:
        check_quantities(resources.limits, (*path, ".limits"))


def check_quantities(quantities: Quantities, path: tuple[Any, ...]) -> None:
    """Check that every quantity can be read and is not negative."""
    for name, quantity in quantities.items():
        try:
            if parse_nano(quantity) >= 0:
                continue
            problem = f'"{quantity}" is negative'
        except InputError as error:
            problem = error.problem
        raise fault_at(problem, (*path, ".", name))


def _affinity(affinity: Affinity, path: str) -> None:
    if (near := affinity.node_affinity) is not None:
        base = (path, ".affinity.nodeAffinity")
        terms = near.required.node_selector_terms if near.required is not None else None
        for place, term in enumerate(terms or ()):
            _node_term(term, (*base, _REQUIRED, ".nodeSelectorTerms", place))
        for place, wished in enumerate(near.preferred or ()):
            _node_term(wished.preference, (*base, _PREFERRED, place, ".preference"))
    if affinity.pod_affinity is not None:
        _pod_affinity(affinity.pod_affinity, (path, ".affinity.podAffinity"))
    if affinity.pod_anti_affinity is not None:
        _pod_affinity(affinity.pod_anti_affinity, (path, ".affinity.podAntiAffinity"))


def _pod_affinity(affinity: PodAffinity, path: tuple[Any, ...]) -> None:
    terms = [((*path, _REQUIRED, place), term) for place, term in enumerate(affinity.required or ())]
    terms += [
        ((*path, _PREFERRED, place, ".podAffinityTerm"), wished.pod_affinity_term)
        for place, wished in enumerate(affinity.preferred or ())
    ]
    for where, term in terms:
        if not term.topology_key:
            raise fault_at("a label is required", (*where, ".topologyKey"))
        if term.label_selector is not None:
            check_selector(term.label_selector, (*where, ".labelSelector"))
        if term.namespace_selector is not None:
            check_selector(term.namespace_selector, (*where, ".namespaceSelector"))


def _node_term(term: NodeSelectorTerm, path: tuple[Any, ...]) -> None:
    for field, requirements in ((".matchExpressions", term.match_expressions), (".matchFields", term.match_fields)):
        for place, requirement in enumerate(requirements or ()):
            if requirement.operator not in _OPERATORS:
                problem = (
                    f'"{requirement.operator}" is not an operator (want In, NotIn, Exists, DoesNotExist, Gt or Lt)'
                )
                raise fault_at(problem, (*path, field, place, ".operator"))


def check_selector(selector: LabelSelector, path: tuple[Any, ...]) -> None:
    """Check the expressions of a label selector."""
    if selector.match_expressions:
        try:
            parse_label_selector(selector)
        except InputError as error:
            raise fault_at(error.problem, path) from None


def _toleration(toleration: Toleration, path: tuple[Any, ...]) -> None:
    if toleration.operator not in _TOLERATION_OPERATORS:
        problem = f'"{toleration.operator}" is not an operator (want Equal, Exists, Lt or Gt)'
        raise fault_at(problem, (*path, ".operator"))
    if toleration.effect not in _TOLERATED_EFFECTS:
        raise fault_at(f'"{toleration.effect}" is not an effect', (*path, ".effect"))
    if not toleration.key and toleration.operator != "Exists":
        raise fault_at("must be Exists when there is no key", (*path, ".operator"))


def _spread(constraint: TopologySpreadConstraint, path: tuple[Any, ...]) -> None:
    if constraint.max_skew <= 0:
        raise fault_at("must be greater than 0", (*path, ".maxSkew"))
    if not constraint.topology_key:
        raise fault_at("a label is required", (*path, ".topologyKey"))
    if constraint.when_unsatisfiable not in _UNSATISFIABLE:
        problem = f'"{constraint.when_unsatisfiable}" is neither DoNotSchedule nor ScheduleAnyway'
        raise fault_at(problem, (*path, ".whenUnsatisfiable"))
    for field, policy in (
        (".nodeAffinityPolicy", constraint.node_affinity_policy),
        (".nodeTaintsPolicy", constraint.node_taints_policy),
    ):
        if policy not in _POLICIES:
            raise fault_at(f'"{policy}" is neither Honor nor Ignore', (*path, field))
    if constraint.label_selector is not None:
        check_selector(constraint.label_selector, (*path, ".labelSelector"))


def check_time(text: str, path: str) -> None:
    """Check a timestamp."""
    try:
        micros(text)
    except InputError as error:
        raise InputError(error.problem, field=path) from None


def fault_at(problem: str, path: Iterable[Any]) -> InputError:
    """A fault at a path whose numbers are places in lists."""
    return InputError(problem, field="".join(f"[{part}]" if isinstance(part, int) else part for part in path))
