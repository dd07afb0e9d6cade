"""Kubernetes' own groups, alone and composite."""

import pytest

from tests.support.gang_manifests import gang, objects, pods, problem
from tutti.kube.gangs.gang import DisruptionMode, Gang, GangPart, GangTopology
from tutti.kube.gangs.reader import membership, part_of, read_gangs, root
from tutti.kube.times import micros


def group(name, spec, *, kind="PodGroup", **metadata):
    return str({"apiVersion": "scheduling.k8s.io/v1alpha3", "kind": kind, "metadata": {"name": name} | metadata,
                "spec": spec}).replace("'", '"')  # fmt: skip


def composite(name, spec, **metadata):
    return group(name, spec, kind="CompositePodGroup", **metadata)


def of(name, count, **spec):
    return pods(name, count, schedulingGroup={"podGroupName": name}, **spec)


GANG = {"schedulingPolicy": {"gang": {"minCount": 3}}}
BASIC = {"schedulingPolicy": {"basic": {}}}


def test_a_gang_with_everything():
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
    assert gang(text, high, *of("train", 4)) == Gang(
        key="default/train",
        dialect="native",
        minimum=3,
        topology=GangTopology(required="example.com/rack"),
        disruption=DisruptionMode.ALL,
        priority=7,
        preempts=False,
        created=micros("2026-08-01T00:00:00Z"),
    )


def test_basic_pods_start_each_for_itself():
    found = gang(group("train", BASIC), *of("train", 4))
    assert (found.minimum, found.disruption, found.preempts) == (1, DisruptionMode.SINGLE, None)


@pytest.mark.parametrize("mode", [{"single": {}}, {}, "Pod"])
def test_pods_are_evicted_one_by_one(mode):
    assert gang(group("a", GANG | {"disruptionMode": mode}), *of("a", 1)).disruption is DisruptionMode.SINGLE


@pytest.mark.parametrize(
    ("spec", "said"),
    [
        ({}, "its schedulingPolicy is neither basic nor gang"),
        ({"schedulingPolicy": {"basic": {}, "gang": {"minCount": 2}}},
         "its schedulingPolicy is neither basic nor gang"),
        ({"schedulingPolicy": {"gang": {}}}, "its gang policy has no minCount"),
        ({"schedulingPolicy": {"gang": {"minCount": -1}}}, "minCount -1 is less than 1"),
        (GANG | {"schedulingConstraints": {"topology": [{"key": "a"}, {"key": "b"}]}},
         "it has 2 topology constraints, and one is understood"),
        (GANG | {"schedulingConstraints": {"topology": [{}]}}, "its topology constraint has no key"),
        (GANG | {"disruptionMode": {"single": {}, "all": {}}}, "its disruptionMode is neither single nor all"),
        (GANG | {"preemptionPolicy": "Maybe"}, 'its preemptionPolicy "Maybe" is not understood'),
        (GANG | {"priorityClassName": "high"}, "PriorityClass high is not there"),
        (GANG | {"workloadRef": {"workloadName": "w", "templateName": "t"}}, None),
        ({"workloadRef": {"workloadName": "w", "templateName": "t"}}, "Workload default/w is not there"),
    ],
)  # fmt: skip
def test_contradictions(spec, said):
    assert problem(group("a", spec), *of("a", 3)) == said


def test_a_missing_group():
    assert problem(*of("a", 3)) == "PodGroup default/a is not there"


@pytest.mark.parametrize(
    ("field", "values", "said"),
    [
        ("priority", (1, 2), "its pods name two priorities: 1 (a-0) and 2 (b-0)"),
        ("schedulerName", ("x", "y"), "its pods name two schedulers: x (a-0) and y (b-0)"),
        ("preemptionPolicy", ("Never", "Other"), "its pods name two preemption policies: Never (a-0) and Other (b-0)"),
    ],
)
def test_pods_of_a_group_are_scheduled_alike(field, values, said):
    both = [*pods("a", 1, schedulingGroup={"podGroupName": "g"}, **{field: values[0]}),
            *pods("b", 1, schedulingGroup={"podGroupName": "g"}, **{field: values[1]})]  # fmt: skip
    assert problem(group("g", GANG), *both) == said


def test_pods_have_the_priority_of_their_group():
    members = of("a", 2, priority=1)
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
    found = gang(workload, group("a", {"workloadRef": {"workloadName": "w", "templateName": "workers"}}), *of("a", 1))
    assert (found.minimum, found.disruption) == (5, DisruptionMode.ALL)
    other = group("a", {"workloadRef": {"workloadName": "w", "templateName": "ps"}})
    assert problem(workload, other, *of("a", 1)) == "Workload default/w has no template ps"


# Composite ------------------------------------------------------------------------------------------------------------


def below(parent, policy):
    return policy | {"parentCompositePodGroupName": parent}


TREE = (
    composite("job", {"schedulingPolicy": {"gang": {"minGroupCount": 2}}, "priority": 3,
                      "schedulingConstraints": {"topology": [{"key": "zone"}]}}),
    composite("slice", below("job", {"schedulingPolicy": {"gang": {"minGroupCount": 1}},
                                     "schedulingConstraints": {"topology": [{"key": "rack"}]}})),
    group("driver", below("job", BASIC)),
    group("left", below("slice", GANG)),
    group("right", below("slice", {"schedulingPolicy": {"gang": {"minCount": 2}}, "disruptionMode": {"all": {}}})),
    *of("driver", 1), *of("left", 3), *of("right", 3),
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
    said = membership(known["Pod", "default/left-0"])
    assert said.group == "default/left"
    assert root(said.group, lambda kind, key: known.get((kind, key))) == "default/job"
    assert part_of(said, "default/job") == "left"
    assert root("default/unknown", lambda kind, key: None) == "default/unknown"


@pytest.mark.parametrize(
    ("texts", "said"),
    [
        ([group("a", below("job", GANG)), *of("a", 1)], "CompositePodGroup default/job is not there"),
        ([composite("job", BASIC), composite("mid", below("job", {})), group("a", below("mid", GANG)), *of("a", 1)],
         "group default/mid: its schedulingPolicy is neither basic nor gang"),
        ([composite("job", {"schedulingPolicy": {"gang": {}}}), group("a", below("job", GANG)), *of("a", 1)],
         "its gang policy has no minGroupCount"),
        ([composite("x", below("y", BASIC)), composite("y", below("x", BASIC)), group("a", below("x", GANG)),
          *of("a", 1)], "the groups above it go in a circle, or are more than 4"),
        ([composite("a", BASIC), group("a", below("a", GANG)), *of("a", 1)],
         "a PodGroup and a CompositePodGroup are both called default/a"),
        ([composite("job", BASIC), group("a", below("job", GANG), annotations={"tutti.dev/duration": "1h"}),
          *of("a", 1)],
         "annotation tutti.dev/duration of PodGroup default/a is not read: it is for the group at the root"),
    ],
)  # fmt: skip
def test_broken_trees(texts, said):
    assert problem(*texts) == said


def test_a_tree_may_be_four_composite_groups_high():
    def tower(height):
        names = [f"c{level}" for level in range(height)]
        specs = [below(names[level + 1], BASIC) if level + 1 < height else BASIC for level in range(height)]
        return [composite(n, s) for n, s in zip(names, specs, strict=True)] + [group("a", below("c0", GANG))]

    assert list(read_gangs(objects(*tower(4), *of("a", 1)))) == ["default/c3"]
    assert problem(*tower(5), *of("a", 1)) == "the groups above it go in a circle, or are more than 4"


def test_a_basic_composite_group_needs_one_of_its_groups():
    found = gang(composite("job", BASIC), group("a", below("job", GANG)), *of("a", 3))
    assert (found.parts, found.parts_needed, found.minimum) == ((GangPart("a", 3),), 1, 3)
