"""Profiles from KubeSchedulerConfiguration files, compared with kube-scheduler's recorded answers where they exist."""

import pytest

from tests.support.paths import VECTORS
from tests.support.recorded_cases import read_cases
from tests.support.scheduler_configs import config, load, profile
from tutti.conformance.scheduler_cases import answers, differences
from tutti.engine.config.profile_loader import load_profile
from tutti.engine.placement.profile import Profile
from tutti.exceptions import InputError

RECORDED = VECTORS / "profiles.jsonl.gz"
DEFAULT = [(e.plugin.name, e.weight) for e in Profile.default().plugins]
SCORE_ONLY = ["NodeResourcesBalancedAllocation", "ImageLocality"]


def weights(loaded):
    return [(e.plugin.name, e.weight) for e in loaded.plugins]


def filters(loaded):
    return [e.plugin.name for e in loaded.plugins if e.filters]


# Recorded answers -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("family", ["profile-fit", "profile-points", "profile-args"])
def test_recorded_answers(family):
    """Compare with kube-scheduler's answers under such a configuration (`oracle/kube-scheduler`)."""
    cases = [case for case in read_cases(str(RECORDED)) if case.family == family]
    assert len(cases) == 20
    for case in cases:
        results = list(answers(case))
        assert len(results) == len(case.expect)
        for expected, got in zip(case.expect, results, strict=True):
            assert differences(expected, got) == [], (case.name, expected["pod"])


# Profiles -------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "tree", [config(), config({}), config(profiles=None), config({"plugins": None, "pluginConfig": None})]
)
def test_an_empty_configuration_is_the_default_profile(tree):
    loaded = load(tree)
    assert weights(loaded) == DEFAULT
    assert filters(loaded) == [name for name, _ in DEFAULT if name not in SCORE_ONLY]
    assert loaded[1:] == Profile.default()[1:]


def test_yaml_reads_as_json():
    text = b"""
apiVersion: kubescheduler.config.k8s.io/v1
kind: KubeSchedulerConfiguration
leaderElection: {leaderElect: true}
clientConnection: {kubeconfig: /etc/kubernetes/scheduler.conf}
parallelism: 8
percentageOfNodesToScore: 30
profiles:
- schedulerName: packing
  plugins:
    score:
      enabled:
      - name: NodeResourcesFit
        weight: 5
  pluginConfig:
  - name: NodeResourcesFit
    args:
      scoringStrategy: {type: MostAllocated}
"""
    loaded = load_profile(text, file="scheduler.yaml")
    assert loaded.scheduler_name == "packing"
    assert ("NodeResourcesFit", 5) in weights(loaded)


def test_profiles_are_found_by_name():
    tree = config(
        {"schedulerName": "first", **profile(postFilter=([], ["*"]))},
        {"schedulerName": "second", **profile(preEnqueue=([], ["*"]))},
    )
    assert load(tree).scheduler_name == "first"
    assert load(tree, scheduler_name="second")[1:4] == ("second", False, True)
    assert load(tree, scheduler_name="first")[1:4] == ("first", True, False)
    tree["profiles"].append({"schedulerName": "default-scheduler"})
    assert load(tree).scheduler_name == "default-scheduler"
    with pytest.raises(InputError, match='no profile is named "third", only first, second, default-scheduler'):
        load(tree, scheduler_name="third")


@pytest.mark.parametrize(
    ("points", "expected"),
    [
        ({"multiPoint": ([("ImageLocality", 7)], [])}, ("ImageLocality", 7)),
        ({"multiPoint": (["NodeAffinity"], [])}, ("NodeAffinity", 1)),
        ({"score": ([("NodeAffinity", 0)], [])}, ("NodeAffinity", 1)),
        ({"score": ([("NodeAffinity", 9)], []), "multiPoint": ([("NodeAffinity", 4)], [])}, ("NodeAffinity", 9)),
        ({"score": ([("TaintToleration", 8)], ["*"])}, ("NodeAffinity", 0)),
        ({"score": ([], ["TaintToleration"])}, ("TaintToleration", 0)),
    ],
)
def test_weights(points, expected):
    assert expected in weights(load(config(profile(**points))))


@pytest.mark.parametrize(
    ("points", "expected"),
    [
        ({"multiPoint": ([], ["NodeResourcesFit", "NodePorts"])}, {"NodeResourcesFit", "NodePorts"}),
        ({"filter": ([], ["NodeResourcesFit"])}, {"NodeResourcesFit"}),
        ({"filter": ([], ["NodeAffinity"]), "preFilter": ([], ["NodeAffinity"])}, {"NodeAffinity"}),
        ({"multiPoint": ([], ["SelectorSpread", "GangScheduling"])}, set()),
    ],
)
def test_disabled_filters(points, expected):
    on = filters(load(config(profile(**points))))
    assert {name for name, _ in DEFAULT if name not in SCORE_ONLY} - set(on) == expected


def test_a_filter_can_be_off_while_the_score_is_on():
    loaded = load(config(profile(filter=([], ["TaintToleration"]))))
    assert ("TaintToleration", 3) in weights(loaded)
    assert "TaintToleration" not in filters(loaded)


def test_order_of_filters():
    first = load(config(profile(filter=(["NodePorts", "NodeResourcesFit"], []))))
    assert filters(first)[:3] == ["NodePorts", "NodeResourcesFit", "NodeName"]
    last = load(config(profile(filter=(["NodePorts"], ["NodePorts"]))))
    assert filters(last)[-1] == "NodePorts"
    named = ["InterPodAffinity", "PrioritySort", "NodeName", "DefaultBinder"]
    alone = load(config(profile(multiPoint=(named, ["*"]))))
    assert weights(alone) == [("InterPodAffinity", 1), ("NodeName", 0)]
    assert alone[2:] == (False, False, False)
