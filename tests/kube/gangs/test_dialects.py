"""The gang that each dialect declares, and the problems of invalid declarations."""

import json

import pytest

from tests.support.gang_manifests import gang, objects, pod, pods, problem, read_gangs
from tutti.kube.gangs.gang import DisruptionMode, Gang, GangPart, GangTopology
from tutti.kube.gangs.reader import membership
from tutti.kube.times import micros


def group(version, spec, *, status=None, **metadata):
    fields = {"apiVersion": version, "kind": "PodGroup", "metadata": {"name": "a"} | metadata, "spec": spec}
    return json.dumps(fields | {"status": status})


# Plain annotation -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("key", ["pod-group", "pod_group"])
def test_all_pods_that_name_a_group_start_together(key):
    counted = Gang(key="default/a", dialect="annotation", minimum=3, is_counted=True)
    assert gang(*pods("a", 3, annotations={key: "a"})) == counted


def test_finished_pods_do_not_count_and_terminating_pods_do():
    done = """
        apiVersion: v1
        kind: Pod
        metadata: {name: done, annotations: {pod-group: a}}
        spec: {containers: [{name: c}]}
        status: {phase: Succeeded}
        """
    leaving = """
        apiVersion: v1
        kind: Pod
        metadata: {name: leaving, annotations: {pod-group: a}, deletionTimestamp: "2026-08-01T00:00:00Z"}
        spec: {containers: [{name: c}]}
        """
    assert gang(done, leaving, *pods("a", 2, annotations={"pod-group": "a"})).minimum == 3


def test_an_annotation_may_state_the_minimum():
    annotations = {"pod-group": "a", "tutti.dev/min-member": "2"}
    assert gang(*pods("a", 3, annotations=annotations)).minimum == 2
    assert problem(*pods("a", 3, annotations=annotations | {"tutti.dev/min-member": "all"})) == (
        'tutti.dev/min-member "all" is not a number'
    )


def test_two_spellings_must_name_the_same_group():
    (result,) = objects(pod("p", annotations={"pod-group": "a", "pod_group": "b"}))
    assert membership(result).problem == "it names two groups: a (annotation) and b (annotation)"


def test_groups_are_namespaced():
    text = "{apiVersion: v1, kind: Pod, metadata: {name: p, namespace: %s, annotations: {pod-group: a}}}"
    assert list(read_gangs(objects(text % "one", text % "two"))) == ["one/a", "two/a"]


# Coscheduling ---------------------------------------------------------------------------------------------------------

COSCHEDULING = "scheduling.x-k8s.io/v1alpha1"
LABEL = {"scheduling.x-k8s.io/pod-group": "a"}


def old_labels(size):
    return {"pod-group.scheduling.sigs.k8s.io/name": "a", "pod-group.scheduling.sigs.k8s.io/min-available": size}


def test_coscheduling():
    pod_group = group(
        COSCHEDULING, {"minMember": 3, "scheduleTimeoutSeconds": 10}, creationTimestamp="2026-08-01T00:00:00Z"
    )
    assert gang(pod_group, *pods("a", 4, labels=LABEL)) == Gang(
        key="default/a", dialect="coscheduling", minimum=3, created=micros("2026-08-01T00:00:00Z")
    )
    assert gang(group(COSCHEDULING, {}), *pods("a", 4, labels=LABEL)).minimum == 1


def test_coscheduling_without_a_valid_group_is_a_problem():
    assert problem(*pods("a", 2, labels=LABEL)) == "PodGroup default/a is not there"
    assert problem(group(COSCHEDULING, {"minMember": -1}), *pods("a", 2, labels=LABEL)) == "minMember -1 is less than 0"


def test_old_coscheduling_labels_need_no_group():
    assert gang(*pods("a", 2, labels=old_labels("2"))) == Gang(key="default/a", dialect="coscheduling", minimum=2)
    assert problem(*pods("a", 1, labels=old_labels("4")), *pods("b", 1, labels=old_labels("8"))) == (
        "its pods name two sizes: 4 (a-0) and 8 (b-0)"
    )
    assert problem(*pods("a", 1, labels=old_labels("x"))) == 'min-available "x" is not a number'
    assert problem(group(COSCHEDULING, {"minMember": 3}), *pods("a", 1, labels=old_labels("4"))) == (
        "its pods name the size 4, its PodGroup says 3"
    )


# Fluence --------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("where", ["labels", "annotations"])
@pytest.mark.parametrize("prefix", ["fluence.", "fluence.flux-framework.org/"])
def test_fluence_needs_no_group_object(prefix, where):
    strings = {f"{prefix}group": "a", f"{prefix}group-size": "4"}
    assert gang(*pods("a", 4, **{where: strings})) == Gang(key="default/a", dialect="fluence", minimum=4)


def test_labels_of_the_fluence_webhook():
    members = pods("a", 2, labels=LABEL | {"fluence.group-size": "2"})
    assert gang(*members) == Gang(key="default/a", dialect="fluence", minimum=2)
    times = {"creationTime": "2026-08-01T00:00:00.000123Z"}
    result = gang(group(COSCHEDULING, {"minMember": 2}, status=times), *members)
    assert (result.created, result.problem) == (micros("2026-08-01T00:00:00.000123Z"), None)
    assert problem(group(COSCHEDULING, {"minMember": 3}), *members) == "it has two sizes: 2 and the 3 of its PodGroup"


def test_fluence_without_a_size():
    members = pods("a", 3, labels={"fluence.group": "a"})
    assert gang(*members).minimum == 3
    assert gang(group(COSCHEDULING, {"minMember": 2}), *members).minimum == 2


def test_fluence_with_a_native_pod_group():
    labels = {"fluence.flux-framework.org/group": "a", "fluence.flux-framework.org/group-size": "4"}
    members = pods("a", 4, labels=labels, schedulingGroup={"podGroupName": "a"})
    native = (
        "{apiVersion: scheduling.k8s.io/v1alpha2, kind: PodGroup, metadata: {name: a}, spec: {schedulingPolicy: %s}}"
    )
    result = gang(native % "{gang: {minCount: 4}}", *members)
    assert (result.dialect, result.minimum, result.problem) == ("native", 4, None)
    assert problem(native % "{gang: {minCount: 3}}", *members) == "it has two sizes: 4 and the 3 of its PodGroup"


@pytest.mark.parametrize(
    ("labels", "expected"),
    [
        ({"fluence.group-size": "0"}, "fluence.group-size 0 is less than 1"),
        ({"fluence.group-size": "99999999999"}, 'fluence.group-size "99999999999" is not a number'),
        ({"fluence.group-size": "2", "fluence.flux-framework.org/group-size": "3"}, "pod a-0 names two sizes: 2 and 3"),
        ({"fluence-jobspec": "zone"}, "fluence-jobspec of pod a-0 is not understood"),
        ({"fluence.flux-framework.org/require-vendor": "x"},
         "fluence.flux-framework.org/require-vendor of pod a-0 is not understood"),
    ],
)  # fmt: skip
def test_invalid_fluence_groups_get_a_problem(labels, expected):
    assert problem(*pods("a", 2, labels={"fluence.group": "a"} | labels)) == expected


# Volcano --------------------------------------------------------------------------------------------------------------

VOLCANO = "scheduling.volcano.sh/v1beta1"


def tasks(task, count, **annotations):
    strings = {"scheduling.k8s.io/group-name": "a", "volcano.sh/task-spec": task} | annotations
    return pods(task, count, annotations=strings)


def test_volcano():
    high = "{apiVersion: scheduling.k8s.io/v1, kind: PriorityClass, metadata: {name: high}, value: 7}"
    spec = {"minMember": 3, "minTaskMember": {"ps": 1, "worker": 2}, "priorityClassName": "high", "queue": "q",
            "minResources": {"cpu": "9"}, "networkTopology": {"mode": "soft"}}  # fmt: skip
    assert gang(high, group(VOLCANO, spec), *tasks("ps", 1), *tasks("worker", 3), *tasks("web", 1)) == Gang(
        key="default/a",
        dialect="volcano",
        minimum=3,
        parts=(GangPart("ps", 1), GangPart("web", 0), GangPart("worker", 2)),
        priority=7,
    )


def test_task_minimums_that_exceed_the_minimum_do_not_count():
    spec = {"minMember": 2, "minTaskMember": {"ps": 1, "worker": 2}}
    assert gang(group(VOLCANO, spec), *tasks("ps", 1)) == Gang(key="default/a", dialect="volcano", minimum=2)


def test_volcano_pods_may_state_the_minimum():
    key = "scheduling.volcano.sh/group-min-member"
    assert gang(*tasks("ps", 2, **{key: "2"})).minimum == 2
    assert problem(*tasks("ps", 2)) == "PodGroup default/a is not there"
    assert problem(*tasks("ps", 2, **{key: "2", "volcano.sh/network-topology-mode": "hard"})) == (
        "its network topology is hard, but Tutti does not read HyperNodes"
    )


@pytest.mark.parametrize(
    ("spec", "expected"),
    [
        ({"networkTopology": {"mode": "hard", "highestTierAllowed": 1}},
         "its networkTopology is hard, but Tutti does not read HyperNodes"),
        ({"networkTopology": {"highestTierAllowed": 1}},
         "its networkTopology is hard, but Tutti does not read HyperNodes"),
        ({"subGroupPolicy": [{"name": "tp", "subGroupSize": 2, "minSubGroups": 1}]},
         "its subGroupPolicy tp is not understood"),
        ({"subGroupPolicy": [{"name": "tp", "networkTopology": {"mode": "hard"}}]},
         "its subGroupPolicy tp is not understood"),
        ({"subGroupPolicy": [{"name": "tp", "subGroupSize": 2, "networkTopology": {"mode": "soft"}}]}, None),
        ({"minMember": -2}, "minMember -2 is less than 0"),
        ({"minMember": 2, "minTaskMember": {"ps": -1}}, "minTaskMember of ps -1 is less than 0"),
        ({"priorityClassName": "high"}, "PriorityClass high is not there"),
    ],
)  # fmt: skip
def test_invalid_volcano_groups_get_a_problem(spec, expected):
    assert problem(group(VOLCANO, spec), *tasks("ps", 2)) == expected


def test_the_value_of_a_missing_priority_class_comes_from_its_pods():
    member = pods("a", 1, annotations={"scheduling.k8s.io/group-name": "a"}, priorityClassName="high", priority=9)
    assert gang(group(VOLCANO, {"priorityClassName": "high"}), *member).priority == 9


# Kueue ----------------------------------------------------------------------------------------------------------------


def kueue(name, count, **annotations):
    strings = {f"kueue.x-k8s.io/{key.replace('_', '-')}": value for key, value in annotations.items()}
    return pods(name, count, labels={"kueue.x-k8s.io/pod-group-name": "a"}, annotations=strings)


def test_kueue():
    members = kueue("a", 2, pod_group_total_count="2", podset_required_topology="block", role_hash="x",
                    podset_preferred_topology="rack")  # fmt: skip
    assert gang(*members) == Gang(
        key="default/a", dialect="kueue", minimum=2, topology=GangTopology("block", ("rack",))
    )


def test_pod_sets_of_kueue_have_their_own_topologies():
    one = kueue("lead", 1, pod_group_total_count="3", role_hash="x")
    two = kueue("work", 2, pod_group_total_count="3", role_hash="y", podset_required_topology="rack")
    assert gang(*one, *two).parts == (GangPart("x", 0), GangPart("y", 0, GangTopology("rack")))
    assert gang(*one, *kueue("work", 2, pod_group_total_count="3", role_hash="y")).parts == ()
    together = {"pod_group_total_count": "3", "podset_group_name": "g", "podset_required_topology": "rack"}
    one_set = gang(*kueue("lead", 1, role_hash="x", **together), *kueue("work", 2, role_hash="y", **together))
    assert (one_set.parts, one_set.topology) == ((), GangTopology("rack"))


@pytest.mark.parametrize(
    ("members", "expected"),
    [
        (kueue("a", 2), "none of its pods has kueue.x-k8s.io/pod-group-total-count"),
        (kueue("a", 1, pod_group_total_count="two"), 'pod-group-total-count "two" is not a number'),
        ([*kueue("a", 1, pod_group_total_count="2"), *kueue("b", 1, pod_group_total_count="3")],
         "its pods name two sizes: 2 (a-0) and 3 (b-0)"),
        ([*kueue("a", 1, pod_group_total_count="2", podset_required_topology="rack"),
          *kueue("b", 1, podset_required_topology="block")],
         "its pods name two required topologies: rack (a-0) and block (b-0)"),
        (kueue("a", 1, pod_group_total_count="2", podset_slice_size="2"),
         "annotation kueue.x-k8s.io/podset-slice-size of pod a-0 is not understood"),
        ([*kueue("a", 1, pod_group_total_count="2", podset_required_topology="rack"), *kueue("b", 1, role_hash="x")],
         "its pods request a topology, but only some of them have kueue.x-k8s.io/role-hash"),
    ],
)  # fmt: skip
def test_invalid_kueue_groups_get_a_problem(members, expected):
    assert problem(*members) == expected


# KAI ------------------------------------------------------------------------------------------------------------------

KAI = "scheduling.run.ai/v2alpha2"


def kai(name, count, part=None):
    labels = {"kai.scheduler/subgroup-name": part} if part else None
    return pods(name, count, labels=labels, annotations={"pod-group-name": "a"})


def test_kai():
    text = """
        apiVersion: scheduling.run.ai/v2alpha2
        kind: PodGroup
        metadata: {name: a}
        spec:
          minSubGroup: 1
          queue: team
          priorityClassName: inference
          topologyConstraint: {topology: t, requiredTopologyLevel: block, preferredTopologyLevel: rack}
          subGroups:
          - {name: leader, minMember: 1}
          - {name: workers, minSubGroup: 1, topologyConstraint: {requiredTopologyLevel: rack}}
          - {name: left, parent: workers, minMember: 3}
          - {name: right, parent: workers}
        """
    assert gang(text, *kai("l", 1, "leader"), *kai("x", 3, "left")) == Gang(
        key="default/a",
        dialect="kai",
        minimum=1,
        topology=GangTopology("block", ("rack",)),
        parts=(
            GangPart("leader", 1),
            GangPart("workers", 0, GangTopology("rack"), (GangPart("left", 3), GangPart("right", 1)), 1),
        ),
        parts_needed=1,
        priority=125,
    )


@pytest.mark.parametrize(
    ("spec", "expected"),
    [
        ({"minMember": -1}, "minMember -1 is less than 0"),
        ({"minSubGroup": 1}, "minSubGroup 1 is more than the 0 sub-groups"),
        ({"subGroups": [{"name": "x"}]}, 'pod p-0 is in part "y", which the group does not have'),
        ({"subGroups": [{"name": "y"}, {"name": "y"}]}, "it has two sub-groups named y"),
        ({"subGroups": [{"name": "y", "parent": "z"}]}, "sub-group y is below z, which does not exist"),
        ({"subGroups": [{"name": "y", "parent": "z"}, {"name": "z", "parent": "y"}]},
         "its sub-groups form a cycle, or two have the same name"),
        ({"subGroups": [{"minMember": 1}]}, "a sub-group has no name"),
        ({"minMember": 2}, None),
    ],
)  # fmt: skip
def test_invalid_kai_groups_get_a_problem(spec, expected):
    assert problem(group(KAI, spec), *kai("p", 2, "y")) == expected


def test_kai_without_a_group_or_with_segments_is_a_problem():
    assert problem(*kai("p", 2)) == "PodGroup default/a is not there"
    segments = {"kai.scheduler/segment-size": "2"}
    assert problem(group(KAI, {}, annotations=segments), *kai("p", 2)) == (
        "annotation kai.scheduler/segment-size is not understood"
    )


# YuniKorn -------------------------------------------------------------------------------------------------------------

TASK_GROUPS = '[{"name": "driver", "minMember": 1, "minResource": {"cpu": 1}}, {"name": "executor", "minMember": 2}]'


def yunikorn(name, count, *, labels=None, **annotations):
    strings = {f"yunikorn.apache.org/{key.replace('_', '-')}": value for key, value in annotations.items()}
    return pods(name, count, labels=labels or {"applicationId": "a"}, annotations=strings)


def test_an_application_of_yunikorn_is_a_gang():
    driver = yunikorn("d", 1, task_group_name="driver", task_groups=TASK_GROUPS)
    executors = yunikorn("e", 3, task_group_name="executor", schedulingPolicyParameters="gangSchedulingStyle=Soft")
    others = yunikorn("o", 2)
    assert gang(*driver, *executors, *others) == Gang(
        key="default/a", dialect="yunikorn", minimum=3, parts=(GangPart("driver", 1), GangPart("executor", 2))
    )


def test_yunikorn_pods_without_a_task_group_are_in_no_gang():
    assert read_gangs(objects(*yunikorn("o", 2))) == {}


@pytest.mark.parametrize("labels", [{"yunikorn.apache.org/app-id": "a"}, {"spark-app-selector": "a"}])
def test_labels_that_name_a_yunikorn_application(labels):
    assert gang(*yunikorn("d", 1, labels=labels, task_groups=TASK_GROUPS)).key == "default/a"


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (None, "none of its pods has yunikorn.apache.org/task-groups"),
        ("[{}]", "yunikorn.apache.org/task-groups cannot be read: Object missing required field `name` - at `$[0]`"),
        ('[{"name": "x", "minMember": -1}]', "minMember of x -1 is less than 0"),
        ('[{"name": "y", "minMember": 1}]', 'pod p-0 is in part "x", which the group does not have'),
        ('[{"name": "x", "minMember": 1}, {"name": "x", "minMember": 1}]', "it has two parts named x"),
    ],
)
def test_invalid_yunikorn_applications_get_a_problem(text, expected):
    assert problem(*yunikorn("p", 1, task_group_name="x", task_groups=text)) == expected


def test_the_default_disruption_mode_is_whole_and_of_native_gangs_single():
    assert gang(*kai("p", 1)).disruption is gang(*pods("a", 1, annotations={"pod-group": "a"})).disruption
    assert gang(*kai("p", 1)).disruption is DisruptionMode.WHOLE
    assert gang(*pods("a", 1, schedulingGroup={"podGroupName": "a"})).disruption is DisruptionMode.SINGLE
