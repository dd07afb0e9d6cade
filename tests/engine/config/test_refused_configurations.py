"""Refused configurations: what kube-scheduler or Tutti refuses in a KubeSchedulerConfiguration, and the messages."""

import pytest

from tests.support.scheduler_configs import args, config, load, profile
from tutti.engine.config.profile_loader import load_profile
from tutti.exceptions import InputError

REFUSED_BY_KUBE_SCHEDULER = [
    ({"kind": "Pod", "apiVersion": "v1"}, "kind", "must be KubeSchedulerConfiguration"),
    (config(apiVersion="kubescheduler.config.k8s.io/v1beta3"), "apiVersion", "no longer reads older versions"),
    (config(paralelism=3), "paralelism", "no such field"),
    (config({"plugin": {}}), "profiles[0].plugin", "no such field"),
    (config({"plugins": {"filters": {}}}), "profiles[0].plugins.filters", "no such field"),
    (config({"plugins": {"filter": {"enable": []}}}), "profiles[0].plugins.filter.enable", "no such field"),
    (config({"plugins": {"filter": {"enabled": "x"}}}), "profiles[0].plugins.filter.enabled", "expected a list"),
    (config(profile(bind=([("X", "3")], []))), "profiles[0].plugins.bind.enabled[0].weight", "expected int"),
    (config(percentageOfNodesToScore=101), "percentageOfNodesToScore", "from 0 to 100"),
    (config({"percentageOfNodesToScore": -1}), "profiles[0].percentageOfNodesToScore", "from 0 to 100"),
    (config({}, {}), "profiles[0].schedulerName", "a name is required"),
    (config({"schedulerName": ""}), "profiles[0].schedulerName", "a name is required"),
    (config({"schedulerName": "a"}, {"schedulerName": "a"}), "profiles[1].schedulerName", "there twice"),
    (config(profile(filter=(["NodeFit"], []))), "profiles[0].plugins.filter.enabled[0].name", 'no plugin "NodeFit"'),
    (config(profile(score=(["SelectorSpread"], []))), "profiles[0].plugins.score.enabled[0].name", "use PodTopology"),
    (config(profile(filter=(["EBSLimits"], []))), "profiles[0].plugins.filter.enabled[0].name", "use NodeVolumeLimits"),
    (config(profile(filter=(["ImageLocality"], []))), "profiles[0].plugins.filter.enabled[0]", "does not run at this"),
    (config(profile(filter=(["NodePorts"] * 2, []))), "profiles[0].plugins.filter.enabled[1]", "there twice"),
    (config(profile(multiPoint=(["NodePorts"] * 2, []))), "profiles[0].plugins.multiPoint.enabled", "there twice"),
    (config(profile(queueSort=([], ["*"]))), "profiles[0].plugins.queueSort", "pods need an order"),
    (config(profile(multiPoint=([], ["DefaultBinder"]))), "profiles[0].plugins.bind", "no other plugin binds pods"),
    (config(args("NodeResourcesFit") | {"plugins": []}), "profiles[0].plugins", "expected a mapping"),
    (config({"pluginConfig": [{"name": "VolumeBinding"}] * 2}), "profiles[0].pluginConfig[1].name", "there twice"),
    (config(args("EBSLimits")), "profiles[0].pluginConfig[0].name", "use NodeVolumeLimits"),
]  # fmt: skip

REFUSED_ARGS = [
    ("NodeResourcesFit", {"kind": "VolumeBindingArgs"}, "kind", "is not NodeResourcesFitArgs"),
    ("NodeResourcesFit", {"apiVersion": "kubescheduler.config.k8s.io/v1beta3"}, "apiVersion", "is not kubescheduler"),
    ("NodeResourcesFit", {"strategy": {}}, "strategy", "no such field"),
    ("NodeResourcesFit", {"ignoredResourceGroups": ["a/b"]}, "ignoredResourceGroups[0]", "before the slash"),
    ("NodeResourcesFit", {"scoringStrategy": {}}, "scoringStrategy.type", "LeastAllocated"),
    ("NodeResourcesFit", {"scoringStrategy": {"type": "Best"}}, "scoringStrategy.type", 'got "Best"'),
    ("NodeResourcesFit", {"scoringStrategy": {"type": "MostAllocated", "resources": [{"name": "cpu", "weight": 101}]}},
     "scoringStrategy.resources[0].weight", "from 1 to 100"),
    ("NodeResourcesFit", {"scoringStrategy": {"type": "MostAllocated", "requestedToCapacityRatio": {"shape": []}}},
     "scoringStrategy.requestedToCapacityRatio", "cannot be combined with"),
    ("NodeResourcesFit", {"scoringStrategy": {"type": "RequestedToCapacityRatio"}},
     "scoringStrategy.requestedToCapacityRatio", "is required"),
    ("NodeResourcesBalancedAllocation", {"resources": [{"name": "cpu", "weight": 2}]}, "resources[0].weight", "1 to 1"),
    ("NodeResourcesBalancedAllocation", {"resources": [{"name": "cpu"}, {"name": "cpu"}]}, "resources[1].name", "is"),
    ("InterPodAffinity", {"hardPodAffinityWeight": 101}, "hardPodAffinityWeight", "from 0 to 100"),
    ("InterPodAffinity", {"hardPodAffinityWeight": "1"}, "hardPodAffinityWeight", "expected int"),
    ("NodeAffinity", {"addedAffinity": {"required": {}}}, "addedAffinity.required", "no such field"),
    ("PodTopologySpread", {"defaultingType": "Some"}, "defaultingType", "System or List"),
    ("PodTopologySpread", {"defaultConstraints": [{}]}, "defaultingType", "must be List"),
    ("VolumeBinding", {"bindTimeoutSeconds": -1}, "bindTimeoutSeconds", "from 0"),
    ("VolumeBinding", {"shape": [{"utilization": 5, "score": 1}, {"utilization": 5, "score": 1}]},
     "shape[1].utilization", "more than the previous point"),
    ("VolumeBinding", {"shape": [{"utilization": 101}]}, "shape[0].utilization", "from 0 to 100"),
    ("VolumeBinding", {"shape": [{"score": 11}]}, "shape[0].score", "from 0 to 10"),
    ("DefaultPreemption", {"minCandidateNodesPercentage": 101}, "minCandidateNodesPercentage", "from 0 to 100"),
    ("DefaultPreemption", {"minCandidateNodesPercentage": 0, "minCandidateNodesAbsolute": 0},
     "minCandidateNodesPercentage", "together"),
]  # fmt: skip

SPREAD = {"maxSkew": 1, "topologyKey": "zone", "whenUnsatisfiable": "ScheduleAnyway"}
REFUSED_CONSTRAINTS = [
    ([SPREAD | {"maxSkew": 0}], "[0].maxSkew"),
    ([{k: v for k, v in SPREAD.items() if k != "maxSkew"}], "[0].maxSkew"),
    ([SPREAD | {"topologyKey": ""}], "[0].topologyKey"),
    ([{k: v for k, v in SPREAD.items() if k != "whenUnsatisfiable"}], "[0].whenUnsatisfiable"),
    ([SPREAD | {"labelSelector": {}}], "[0].labelSelector"),
    ([SPREAD, SPREAD | {"maxSkew": 2}], "[1]"),
]

FAILS_EVERY_POD = [
    {"preFilter": ([], ["NodePorts"])},
    {"preFilter": ([], ["NodeResourcesFit"])},
    {"preFilter": ([], ["PodTopologySpread"])},
    {"preFilter": ([], ["InterPodAffinity"])},
    {"preFilter": ([], ["NodeDeclaredFeatures"])},
    {"preFilter": ([], ["DynamicResources"]), "filter": ([], ["DynamicResources"])},
    {"preScore": ([], ["TaintToleration"])},
    {"preScore": ([], ["*"])},
    {point: ([], ["VolumeBinding"]) for point in ("preFilter", "filter", "reserve", "preBind")},
]

REFUSED_BY_TUTTI = [
    (config(extenders=[{"urlPrefix": "http://extender"}]), "extenders", "does not call extenders"),
    (config(profile(score=([("ImageLocality", -1)], []))), "profiles[0].plugins.score.enabled[0].weight", "negative"),
    (config(profile(score=([("ImageLocality", 10**6)], []))), "profiles[0].plugins", "add up to"),
    (config(profile(filter=([], ["NodeFit"]))), "profiles[0].plugins.filter.disabled[0].name", 'no plugin "NodeFit"'),
    (config(profile(permit=(["GangScheduling"], []))), "profiles[0].plugins.permit.enabled[0].name", "no plugin"),
    (config(args("NodePort")), "profiles[0].pluginConfig[0].name", 'no plugin "NodePort"'),
    (config(args("NodePorts", ports=[80])), "profiles[0].pluginConfig[0].args", "takes no arguments"),
    (config(profile(filter=([], ["NodeAffinity"]))), "profiles[0].plugins", "on at preFilter but off at filter"),
    (config(profile(preFilter=([], ["VolumeZone"]))), "profiles[0].plugins", "on at filter but off at preFilter"),
    (config(profile(reserve=([], ["VolumeBinding"]))), "profiles[0].plugins", "off at reserve"),
    (config(profile(filter=(["VolumeZone"], []))), "profiles[0].plugins.preFilter", "only order that Tutti supports"),
]  # fmt: skip


def refusal(tree):
    with pytest.raises(InputError) as caught:
        load(tree)
    assert caught.value.file == "scheduler.json"
    assert "\n" not in str(caught.value)
    return caught.value


@pytest.mark.parametrize(("tree", "field", "problem"), [*REFUSED_BY_KUBE_SCHEDULER, *REFUSED_BY_TUTTI])
def test_an_error_names_the_field(tree, field, problem):
    error = refusal(tree)
    assert error.field == field
    assert problem in error.problem


@pytest.mark.parametrize(("name", "fields", "field", "problem"), REFUSED_ARGS)
def test_refused_arguments(name, fields, field, problem):
    error = refusal(config(args(name, **fields)))
    assert error.field == f"profiles[0].pluginConfig[0].args.{field}"
    assert problem in error.problem


@pytest.mark.parametrize(("constraints", "field"), REFUSED_CONSTRAINTS)
def test_refused_default_constraints(constraints, field):
    tree = config(args("PodTopologySpread", defaultingType="List", defaultConstraints=constraints))
    assert refusal(tree).field == f"profiles[0].pluginConfig[0].args.defaultConstraints{field}"


@pytest.mark.parametrize("operator", [{"operator": "Likes", "values": ["x"]}, {"operator": "In"}])
def test_refused_added_affinity(operator):
    term = {"matchExpressions": [{"key": "zone", **operator}]}
    required = {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [term]}}
    assert refusal(config(args("NodeAffinity", addedAffinity=required))).field.endswith("nodeSelectorTerms[0]")
    preferred = {"preferredDuringSchedulingIgnoredDuringExecution": [{"weight": 1, "preference": term}]}
    assert refusal(config(args("NodeAffinity", addedAffinity=preferred))).field.endswith("[0].preference")


@pytest.mark.parametrize("points", FAILS_EVERY_POD)
def test_a_configuration_that_fails_every_pod_is_refused(points):
    assert "kube-scheduler fails every pod" in refusal(config(profile(**points))).problem


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        (b"", "expected one document, got 0"),
        (b"a: 1\n---\nb: 2\n", "expected one document, got 2"),
        (b"a: [1", "YAML is malformed"),
        (b"- a", "expected a KubeSchedulerConfiguration, got list"),
        (b"a: 1\nb: {c: 1, c: 2}\n", '"c" is there twice in one mapping (line 2)'),
        (b'{"a": 1, "a": 2}', '"a" is there twice in one mapping'),
        (b"a: &a [*a]\n", "must be KubeSchedulerConfiguration"),
    ],
)
def test_texts_that_are_not_a_configuration(text, problem):
    with pytest.raises(InputError) as caught:
        load_profile(text, file="scheduler.yaml")
    assert problem in str(caught.value)


def test_malformed_json_is_reported_as_json():
    with pytest.raises(InputError, match="JSON is malformed"):
        load_profile(b"{", file="scheduler.json")
