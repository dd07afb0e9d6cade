"""Gangs of Kubernetes' own PodGroups and CompositePodGroups."""

import pytest

from tests.support.gang_manifests import gang, objects, pods, problem, read_gangs
from tutti.kube.gangs.gang import DisruptionMode, Gang, GangPart, GangTopology
from tutti.kube.gangs.reader import membership, part_of, root_group
from tutti.kube.times import micros


def group(name, spec, *, kind="PodGroup", **metadata):
    return str({"apiVersion": "scheduling.k8s.io/v1alpha3", "kind": kind, "metadata": {"name": name} | metadata,
                "spec": spec}).replace("'", '"')  # fmt: skip


def composite(name, spec, **metadata):
    return group(name, spec, kind="CompositePodGroup", **metadata)


def group_pods(name, count, **spec):
    return pods(name, count, schedulingGroup={"podGroupName": name}, **spec)


GANG = {"schedulingPolicy": {"gang": {"minCount": 3}}}
BASIC = {"schedulingPolicy": {"basic": {}}}


def test_a_gang_with_all_fields():
    text = """
        apiVersion: scheduling.k8s.io/v1beta1
        kind: PodGroup
        metadata: {name: train, creationTimestamp: "2026-08-01T00:00:00Z"}
        spec:
          schedulingPolicy: {gang: {minCount: 3}}
          schedulingConstraints: {topology: [{key: example.com/rack}]}
          disruptionMode: {all: {}}
          priorityClassName: high
          preemptionPolicy: Never
        """
    high = "{apiVersion: scheduling.k8s.io/v1, kind: PriorityClass, metadata: {name: high}, value: 7}"
    assert gang(text, high, *group_pods("train", 4)) == Gang(
        key="default/train",
        dialect="native",
        minimum=3,
        topology=GangTopology(required="example.com/rack"),
        disruption=DisruptionMode.ALL,
        priority=7,
        preempts=False,
        created=micros("2026-08-01T00:00:00Z"),
    )


def test_basic_policy_has_minimum_one():
    result = gang(group("train", BASIC), *group_pods("train", 4))
    assert (result.minimum, result.disruption, result.preempts) == (1, DisruptionMode.SINGLE, None)


@pytest.mark.parametrize("mode", [{"single": {}}, {}, "Pod"])
def test_default_and_single_disruption_modes(mode):
    assert gang(group("a", GANG | {"disruptionMode": mode}), *group_pods("a", 1)).disruption is DisruptionMode.SINGLE


@pytest.mark.parametrize(
    ("spec", "expected"),
    [
        ({}, "its schedulingPolicy is neither basic nor gang"),
        ({"schedulingPolicy": {"basic": {}, "gang": {"minCount": 2}}},
         "its schedulingPolicy is neither basic nor gang"),
        ({"schedulingPolicy": {"gang": {}}}, "its gang policy has no minCount"),
        ({"schedulingPolicy": {"gang": {"minCount": -1}}}, "minCount -1 is less than 1"),
        (GANG | {"schedulingConstraints": {"topology": [{"key": "a"}, {"key": "b"}]}},
         "it has 2 topology constraints; only one is supported"),
        (GANG | {"schedulingConstraints": {"topology": [{}]}}, "its topology constraint has no key"),
        (GANG | {"disruptionMode": {"single": {}, "all": {}}}, "its disruptionMode is neither single nor all"),
        (GANG | {"preemptionPolicy": "Maybe"}, 'its preemptionPolicy "Maybe" is not understood'),
        (GANG | {"priorityClassName": "high"}, "PriorityClass high is not there"),
        (GANG | {"workloadRef": {"workloadName": "w", "templateName": "t"}}, None),
        ({"workloadRef": {"workloadName": "w", "templateName": "t"}}, "Workload default/w is not there"),
    ],
)  # fmt: skip
def test_invalid_groups_get_a_problem(spec, expected):
    assert problem(group("a", spec), *group_pods("a", 3)) == expected


def test_a_missing_group_is_a_problem():
    assert problem(*group_pods("a", 3)) == "PodGroup default/a is not there"


@pytest.mark.parametrize(
    ("field", "values", "expected"),
    [
        ("priority", (1, 2), "its pods name two priorities: 1 (a-0) and 2 (b-0)"),
        ("schedulerName", ("x", "y"), "its pods name two schedulers: x (a-0) and y (b-0)"),
        ("preemptionPolicy", ("Never", "Other"), "its pods name two preemption policies: Never (a-0) and Other (b-0)"),
    ],
)
def test_pods_of_a_group_must_agree(field, values, expected):
    both = [*pods("a", 1, schedulingGroup={"podGroupName": "g"}, **{field: values[0]}),
            *pods("b", 1, schedulingGroup={"podGroupName": "g"}, **{field: values[1]})]  # fmt: skip
    assert problem(group("g", GANG), *both) == expected


def test_pods_must_have_the_priority_of_their_group():
    members = group_pods("a", 2, priority=1)
    assert problem(group("a", GANG | {"priority": 1}), *members) is None
    assert problem(group("a", GANG | {"priority": 2}), *members) == "its pods have priority 1, the group has 2"


def test_a_group_takes_its_policy_from_its_template():
    workload = """
        apiVersion: scheduling.k8s.io/v1beta1
        kind: Workload
        metadata: {name: w}
        spec:
          podGroupTemplates:
          - {name: workers, schedulingPolicy: {gang: {minCount: 5}}, disruptionMode: {all: {}}}
        """
    result = gang(
        workload, group("a", {"workloadRef": {"workloadName": "w", "templateName": "workers"}}), *group_pods("a", 1)
    )
    assert (result.minimum, result.disruption) == (5, DisruptionMode.ALL)
    other = group("a", {"workloadRef": {"workloadName": "w", "templateName": "ps"}})
    assert problem(workload, other, *group_pods("a", 1)) == "Workload default/w has no template ps"


# Composite ------------------------------------------------------------------------------------------------------------


def child_of(parent, policy):
    return policy | {"parentCompositePodGroupName": parent}


TREE = (
    composite("job", {"schedulingPolicy": {"gang": {"minGroupCount": 2}}, "priority": 3,
                      "schedulingConstraints": {"topology": [{"key": "zone"}]}}),
    composite("slice", child_of("job", {"schedulingPolicy": {"gang": {"minGroupCount": 1}},
                                     "schedulingConstraints": {"topology": [{"key": "rack"}]}})),
    group("driver", child_of("job", BASIC)),
    group("left", child_of("slice", GANG)),
    group("right", child_of("slice", {"schedulingPolicy": {"gang": {"minCount": 2}}, "disruptionMode": {"all": {}}})),
    *group_pods("driver", 1), *group_pods("left", 3), *group_pods("right", 3),
)  # fmt: skip


def test_a_tree_of_groups_is_one_gang():
    assert gang(*TREE) == Gang(
        key="default/job",
        dialect="native",
        minimum=3,  # the driver, and the smaller side of the slice
        topology=GangTopology(required="zone"),
        parts=(
            GangPart("driver", 1),
            GangPart("slice", 0, GangTopology(required="rack"), (GangPart("left", 3), GangPart("right", 2)), 1),
        ),
        parts_needed=2,
        disruption=DisruptionMode.ALL,
        priority=3,
    )


def test_the_root_and_the_part_of_a_pod():
    known = {(obj.KIND, obj.key): obj for obj in objects(*TREE)}
    left = membership(known["Pod", "default/left-0"])
    assert left.group == "default/left"
    assert root_group(left.group, lambda kind, key: known.get((kind, key))) == "default/job"
    assert part_of(left, "default/job") == "left"
    assert root_group("default/unknown", lambda kind, key: None) == "default/unknown"


@pytest.mark.parametrize(
    ("texts", "expected"),
    [
        ([group("a", child_of("job", GANG)), *group_pods("a", 1)], "CompositePodGroup default/job is not there"),
        ([composite("job", BASIC), composite("mid", child_of("job", {})), group("a", child_of("mid", GANG)),
          *group_pods("a", 1)],
         "group default/mid: its schedulingPolicy is neither basic nor gang"),
        ([composite("job", {"schedulingPolicy": {"gang": {}}}), group("a", child_of("job", GANG)), *group_pods("a", 1)],
         "its gang policy has no minGroupCount"),
        ([composite("x", child_of("y", BASIC)), composite("y", child_of("x", BASIC)), group("a", child_of("x", GANG)),
          *group_pods("a", 1)], "its parent groups form a cycle, or are more than 4"),
        ([composite("a", BASIC), group("a", child_of("a", GANG)), *group_pods("a", 1)],
         "a PodGroup and a CompositePodGroup are both called default/a"),
        ([composite("job", BASIC), group("a", child_of("job", GANG), annotations={"tutti.dev/duration": "1h"}),
          *group_pods("a", 1)],
         "annotation tutti.dev/duration of PodGroup default/a is not read: set it on the root group"),
    ],
)  # fmt: skip
def test_invalid_trees_get_a_problem(texts, expected):
    assert problem(*texts) == expected


def test_a_tree_has_at_most_four_levels_of_composite_groups():
    def tower(height):
        names = [f"c{level}" for level in range(height)]
        specs = [child_of(names[level + 1], BASIC) if level + 1 < height else BASIC for level in range(height)]
        return [composite(n, s) for n, s in zip(names, specs, strict=True)] + [group("a", child_of("c0", GANG))]

    assert list(read_gangs(objects(*tower(4), *group_pods("a", 1)))) == ["default/c3"]
    assert problem(*tower(5), *group_pods("a", 1)) == "its parent groups form a cycle, or are more than 4"


def test_a_basic_composite_group_needs_one_of_its_groups():
    result = gang(composite("job", BASIC), group("a", child_of("job", GANG)), *group_pods("a", 3))
    assert (result.parts, result.parts_needed, result.minimum) == ((GangPart("a", 3),), 1, 3)
