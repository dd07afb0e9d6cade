"""Four kinds named PodGroup: the API group decides which kind an object has."""

import pytest

from tests.support.gang_manifests import objects, pod
from tests.support.loading import load
from tutti.cluster.spec_classes import spec_key
from tutti.exceptions import InputError
from tutti.kube.gangs.reader import GROUP_KINDS
from tutti.kube.objects import KINDS, CoschedulingPodGroup, KaiPodGroup, PodGroup, VolcanoPodGroup, Workload
from tutti.kube.reading.decode import decode_objects
from tutti.kube.reading.parsed_file import parse_file
from tutti.kube.reading.sources import Source


@pytest.mark.parametrize(
    ("version", "kind"),
    [
        ("scheduling.k8s.io/v1beta1", PodGroup),
        ("scheduling.k8s.io/v1alpha3", PodGroup),
        ("scheduling.x-k8s.io/v1alpha1", CoschedulingPodGroup),
        ("scheduling.volcano.sh/v1beta1", VolcanoPodGroup),
        ("scheduling.run.ai/v2alpha2", KaiPodGroup),
    ],
)
def test_the_api_group_decides_the_kind_of_a_pod_group(version, kind):
    (single,) = objects(f"{{apiVersion: {version}, kind: PodGroup, metadata: {{name: g}}}}")
    (listed,) = objects(f"{{apiVersion: {version}, kind: PodGroupList, items: [{{metadata: {{name: g}}}}]}}")
    assert type(single) is type(listed) is kind
    assert (kind.WIRE_KIND, single.key) == ("PodGroup", "default/g")


def test_each_kind_has_one_unique_name():
    assert all(kind == cls.KIND for kind, cls in KINDS.items())
    assert set(GROUP_KINDS) < set(KINDS)
    assert KINDS["Pod"].WIRE_KIND == "Pod"


def test_pod_groups_of_unknown_api_groups_are_skipped(tmp_path):
    file = tmp_path / "groups.yaml"
    file.write_text(
        """
{apiVersion: example.com/v1, kind: PodGroup, metadata: {name: a}}
---
{kind: PodGroup, metadata: {name: a}}
---
{apiVersion: kueue.x-k8s.io/v1beta1, kind: Workload, metadata: {name: a}}
---
{apiVersion: scheduling.x-k8s.io/v1alpha1, kind: PodGroupList, items: []}
"""
    )
    snapshot = load([str(file)])
    assert snapshot.skipped == {"PodGroup": 1, "PodGroup.example.com": 1, "Workload.kueue.x-k8s.io": 1}
    assert snapshot.present_kinds == {CoschedulingPodGroup.KIND}
    assert snapshot.objects_if_given(Workload) is None


def test_notes_and_errors_name_the_kind(tmp_path):
    group = "{apiVersion: scheduling.x-k8s.io/v1alpha1, kind: PodGroup, metadata: {name: %s}, spec: {minMember: %s}}"
    file = tmp_path / "groups.yaml"
    file.write_text("\n---\n".join(group % (name, 2) for name in "ab"))
    assert load([str(file)]).notes == ("2 PodGroups without a namespace taken as in namespace default",)
    with pytest.raises(InputError, match=r"podgroup\.scheduling\.x-k8s\.io default/a: spec\.minMember: expected int"):
        decode_objects(parse_file(Source("groups.yaml", (group % ("a", "many")).encode())))


def test_pods_of_different_groups_have_equal_spec_keys():
    one, other = objects(
        pod("a", schedulingGroup={"podGroupName": "x"}), pod("b", schedulingGroup={"podGroupName": "y"})
    )
    assert one.spec.scheduling_group != other.spec.scheduling_group
    assert spec_key(one) == spec_key(other)
