"""The membership of pods, the tutti.dev annotations, and properties of all dialects."""

import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.support.gang_manifests import gang, objects, pod, pods, problem, read_gangs
from tutti.kube.gangs.gang import DisruptionMode, GangPart, GangTopology, Membership
from tutti.kube.gangs.reader import DIALECTS, membership, read_gang
from tutti.kube.objects import ObjectMeta, Pod, PodSpec, PodStatus, PriorityClass, SchedulingGroup
from tutti.kube.objects import pod_groups as g

LABEL = "scheduling.x-k8s.io/pod-group"
VOLCANO = "scheduling.k8s.io/group-name"


def cosched(annotations=None, minimum=2):
    return str({"apiVersion": "scheduling.x-k8s.io/v1alpha1", "kind": "PodGroup", "spec": {"minMember": minimum},
                "metadata": {"name": "a", "annotations": annotations or {}}})  # fmt: skip


# Membership -----------------------------------------------------------------------------------------------------------


def test_a_pod_without_a_group_has_no_membership():
    assert membership(Pod()) is None
    (result,) = objects(pod("p", labels={"app": "x", LABEL: ""}, annotations={"note": "y"}))
    assert membership(result) is None
    assert read_gangs([result]) == {}


def test_two_dialects_with_different_groups_are_a_problem():
    (result,) = objects(pod("p", labels={LABEL: "a"}, annotations={VOLCANO: "b"}))
    assert membership(result) == Membership(
        "volcano", "default/b", problem="it names two groups: b (volcano) and a (coscheduling)"
    )
    assert problem(pod("p", labels={LABEL: "a"}, annotations={VOLCANO: "b"})) == (
        "pod p contradicts itself: it names two groups: b (volcano) and a (coscheduling)"
    )


def test_two_dialects_may_name_one_group_if_they_agree():
    members = pods("a", 2, labels={LABEL: "a"}, annotations={VOLCANO: "a", "pod-group": "a"})
    volcano = "{apiVersion: scheduling.volcano.sh/v1beta1, kind: PodGroup, metadata: {name: a}, spec: {minMember: 2}}"
    result = gang(volcano, *members)
    assert (result.dialect, result.minimum, result.problem) == ("volcano", 2, None)
    assert gang(volcano, cosched(), *members).problem is None
    assert problem(volcano, cosched(minimum=3), *members) == "it has two sizes: 2 (volcano) and 3 (coscheduling)"


def test_members_of_different_dialects_are_a_problem():
    mixed = [*pods("a", 1, labels={LABEL: "a"}), *pods("b", 1, annotations={VOLCANO: "a"})]
    assert problem(cosched(), *mixed) == "its pods name it in two dialects: coscheduling (a-0) and volcano (b-0)"


def test_the_part_of_a_pod():
    (result,) = objects(pod("p", labels={LABEL: "a", "tutti.dev/sub-group": "x"}))
    assert membership(result) == Membership("coscheduling", "default/a", "x")
    (result,) = objects(
        pod("p", labels={"tutti.dev/sub-group": "x"}, annotations={VOLCANO: "a", "volcano.sh/task-spec": "y"})
    )
    assert membership(result).problem == "it names two parts: y (volcano) and x (tutti.dev/sub-group)"


def test_a_gang_without_pods_is_a_problem():
    assert read_gang("default/a", [], lambda kind, key: None).problem == "no pod names it"


def test_a_gang_whose_group_is_being_deleted_admits_nobody():
    """Its declaration is still valid: pods that run in part can be undone."""
    closing = "{apiVersion: scheduling.volcano.sh/v1beta1, kind: PodGroup, spec: {minMember: 2}, metadata: {name: a, "
    closing += "deletionTimestamp: '2026-01-01T00:00:00Z'}}"
    members = pods("a", 2, annotations={VOLCANO: "a"})
    result = gang(closing, *members)
    assert (result.is_being_deleted, result.problem, result.minimum) == (True, None, 2)
    assert result.refusal == "the group default/a is being deleted: it admits no more pods"
    result = gang(closing, cosched(), *pods("a", 2, labels={LABEL: "a"}))
    assert (result.is_being_deleted, result.refusal) == (False, None)


def test_pods_without_a_group_are_not_passed_to_dialects(monkeypatch):
    """Most pods have no group, so the check must cost only a few set lookups."""
    names = []
    monkeypatch.setattr("tutti.kube.gangs.reader._named_groups", lambda pod: names.append(pod.metadata.name) or [])
    alone, named = objects(
        pod("alone", labels={"app": "x", "pod-template-hash": "y"}, annotations={"a": "b"}),
        pod("named", labels={LABEL: "a"}),
    )
    assert membership(alone) is membership(named) is membership(Pod()) is None
    assert names == ["named"]


# The annotations of tutti.dev -----------------------------------------------------------------------------------------

ALL = {
    "tutti.dev/topology-required": "block",
    "tutti.dev/topology-preferred": "node, rack",
    "tutti.dev/disruption": "all",
    "tutti.dev/duration": "90m",
    "tutti.dev/max-member": "9",
    "tutti.dev/min-member": "2",
    "tutti.dev/sub-groups": '[{"name": "m", "minMember": 1, "topology": {"required": "rack", "preferred": "node"}},'
    ' {"name": "w", "minMember": 3}]',
}


@pytest.mark.parametrize("on_group", [True, False])
def test_annotations_complete_a_gang(on_group):
    members = pods("a", 2, labels={LABEL: "a", "tutti.dev/sub-group": "m"}, annotations=None if on_group else ALL)
    result = gang(cosched(ALL if on_group else None), *members)
    assert result.problem is None
    assert result.topology == GangTopology("block", ("node", "rack"))
    assert result.disruption is DisruptionMode.ALL
    assert (result.duration, result.maximum) == (5400 * 10**6, 9)
    assert result.parts == (GangPart("m", 1, GangTopology("rack", ("node",))), GangPart("w", 3))
    assert result.minimum == 4, "the parts need more than the group asks for"


@pytest.mark.parametrize(
    ("annotations", "expected"),
    [
        ({"min-member": "3"}, "tutti.dev/min-member 3 contradicts the 2 of its group"),
        ({"min-member": "0"}, "tutti.dev/min-member 0 is less than 1"),
        ({"max-member": "1"}, "its maximum 1 is less than its minimum 2"),
        ({"max-member": "-1"}, "tutti.dev/max-member -1 is less than 1"),
        ({"disruption": "some"}, 'tutti.dev/disruption "some" is not one of single, whole, all'),
        ({"duration": "long"}, '"long" is not a duration (want for example 90m, 1h30m or 3600)'),
        ({"sub-groups": "[{}]"},
         "tutti.dev/sub-groups cannot be read: Object missing required field `name` - at `$[0]`"),
        ({"sub-groups": '[{"name": "x", "minimum": 1}]'},
         "tutti.dev/sub-groups cannot be read: Object contains unknown field `minimum` - at `$[0]`"),
        ({"sub-groups": '[{"name": "x", "minMember": -1}]'}, "minMember of sub-group x -1 is less than 0"),
        ({"sub-groups": '[{"name": "x"}, {"name": "x"}]'}, "it has two parts named x"),
        ({"sub-groups": '[{"name": ""}]'}, "it has a part without a name"),
        ({"sub-groups": '[{"name": "x"}]'}, 'pod a-0 is in part "m", which the group does not have'),
        ({"topologie": "x"}, "annotation tutti.dev/topologie (PodGroup a) is not understood"),
    ],
)  # fmt: skip
def test_invalid_annotations_get_a_problem(annotations, expected):
    members = pods("a", 2, labels={LABEL: "a", "tutti.dev/sub-group": "m"})
    assert problem(cosched({f"tutti.dev/{key}": text for key, text in annotations.items()}), *members) == expected


def test_all_values_of_an_annotation_must_be_equal():
    one = pods("a", 1, labels={LABEL: "a"}, annotations={"tutti.dev/duration": "1h"})
    two = pods("b", 1, labels={LABEL: "a"}, annotations={"tutti.dev/duration": "2h"})
    assert gang(cosched(), *one, *pods("c", 1, labels={LABEL: "a"})).duration == 3600 * 10**6
    assert problem(cosched(), *one, *two) == "tutti.dev/duration has two values: 1h (a-0) and 2h (b-0)"
    assert problem(cosched({"tutti.dev/duration": "3h"}), *one) == (
        "tutti.dev/duration has two values: 3h (PodGroup a) and 1h (a-0)"
    )


def test_annotations_that_contradict_the_dialect_are_a_problem():
    kai = """
        apiVersion: scheduling.run.ai/v2alpha2
        kind: PodGroup
        metadata: {name: a, annotations: {%s}}
        spec: {topologyConstraint: {requiredTopologyLevel: rack, preferredTopologyLevel: node}, subGroups: [{name: x}]}
        """
    members = pods("a", 1, annotations={"pod-group-name": "a"})
    assert problem(kai % "tutti.dev/topology-required: rack", *members) is None
    assert problem(kai % "tutti.dev/topology-required: zone", *members) == (
        "tutti.dev/topology-required zone contradicts the rack of its group"
    )
    assert problem(kai % "tutti.dev/topology-preferred: zone", *members) == (
        "tutti.dev/topology-preferred zone contradicts the node of its group"
    )
    assert problem(kai % """tutti.dev/sub-groups: '[{"name": "y"}]'""", *members) == (
        "its parts are declared twice: by kai and by tutti.dev/sub-groups"
    )


# Random input ---------------------------------------------------------------------------------------------------------

KEYS = sorted(
    {key for dialect in DIALECTS for key in dialect.GROUP_KEYS}
    | {LABEL, "applicationId", "volcano.sh/task-spec", "kai.scheduler/subgroup-name", "tutti.dev/sub-group"}
    | {"kueue.x-k8s.io/pod-group-total-count", "kueue.x-k8s.io/podset-required-topology", "kueue.x-k8s.io/role-hash"}
    | {"pod-group.scheduling.sigs.k8s.io/min-available", "scheduling.volcano.sh/group-min-member", *ALL}
)
TEXTS = st.one_of(
    st.sampled_from(["a", "b", "", "1", "2", "-1", "all", "[]", '[{"name": "a", "minMember": 1}]', "1h", "9" * 5000]),
    st.text(max_size=8),
)
STRING_MAPS = st.dictionaries(st.sampled_from(KEYS), TEXTS, max_size=3) | st.none()
NAMES = st.sampled_from(["a", "b", "c"])
COUNTS = st.none() | st.integers(-2, 4)
METADATA = st.builds(ObjectMeta, name=NAMES, annotations=STRING_MAPS, creation_timestamp=st.none() | TEXTS)
POLICIES = st.builds(
    g.SchedulingPolicy,
    basic=st.none() | st.just({}),
    gang=st.none() | st.builds(g.GangPolicy, min_count=COUNTS, min_group_count=COUNTS),
)
SPECS = st.builds(
    g.GroupSpec,
    scheduling_policy=st.none() | POLICIES,
    scheduling_constraints=st.none()
    | st.builds(g.SchedulingConstraints, topology=st.lists(st.builds(g.TopologyConstraint, key=NAMES), max_size=2)),
    disruption_mode=st.sampled_from([None, {}, {"all": {}}, {"single": {}}, "x", 1, ["all"]]),
    priority_class_name=st.none() | NAMES,
    preemption_policy=st.none() | NAMES,
    parent_composite_pod_group_name=st.none() | NAMES,
    workload_ref=st.none() | st.builds(g.WorkloadReference, workload_name=NAMES, template_name=NAMES),
)
TEMPLATES = st.lists(st.builds(g.GroupTemplate, name=NAMES, scheduling_policy=POLICIES), max_size=2)
GROUPS = st.one_of(
    st.builds(g.PodGroup, metadata=METADATA, spec=SPECS),
    st.builds(g.CompositePodGroup, metadata=METADATA, spec=SPECS),
    st.builds(g.Workload, metadata=METADATA, spec=st.builds(g.WorkloadTemplates, pod_group_templates=TEMPLATES)),
    st.builds(
        g.CoschedulingPodGroup,
        metadata=METADATA,
        spec=st.builds(g.CoschedulingSpec, min_member=COUNTS),
        status=st.builds(g.CoschedulingStatus, creation_time=st.none() | TEXTS),
    ),
    st.builds(
        g.VolcanoPodGroup,
        metadata=METADATA,
        spec=st.builds(
            g.VolcanoSpec,
            min_member=COUNTS,
            min_task_member=st.none() | st.dictionaries(NAMES, st.integers(-1, 3)),
            sub_group_policy=st.none() | st.lists(st.dictionaries(st.just("networkTopology"), TEXTS), max_size=1),
        ),
    ),
    st.builds(
        g.KaiPodGroup,
        metadata=METADATA,
        spec=st.builds(
            g.KaiSpec,
            min_member=COUNTS,
            min_sub_group=COUNTS,
            sub_groups=st.lists(
                st.builds(g.KaiSubGroup, name=NAMES, parent=st.none() | NAMES, min_member=COUNTS, min_sub_group=COUNTS),
                max_size=3,
            ),
        ),
    ),
    st.builds(PriorityClass, metadata=st.builds(ObjectMeta, name=NAMES), value=st.integers(-5, 5)),
)
PODS = st.builds(
    Pod,
    metadata=st.builds(
        ObjectMeta,
        name=st.sampled_from([f"p{number}" for number in range(5)]),
        labels=STRING_MAPS,
        annotations=STRING_MAPS,
    ),
    spec=st.builds(
        PodSpec,
        scheduling_group=st.none() | st.builds(SchedulingGroup, pod_group_name=st.none() | NAMES),
        priority=st.none() | st.integers(0, 2),
    ),
    status=st.builds(PodStatus, phase=st.sampled_from([None, "Running", "Failed"])),
)


@given(
    st.lists(PODS | GROUPS, max_size=12, unique_by=lambda obj: (obj.KIND, obj.key)), st.randoms(use_true_random=False)
)
def test_random_input_never_raises_and_the_order_does_not_matter(objects, rng: random.Random):
    gangs = read_gangs(objects)
    shuffled = list(objects)
    rng.shuffle(shuffled)
    assert read_gangs(shuffled) == gangs
    assert list(gangs) == sorted(gangs)
    for each in gangs.values():
        assert each.minimum >= 1
        assert each.problem is None or (each.problem and "\n" not in each.problem)
    groups = {named.group for each in objects if isinstance(each, Pod) and (named := membership(each)) is not None}
    assert len(gangs) <= len(groups)
