"""Which taints a toleration tolerates, as in kube-scheduler."""

import msgspec
import pytest

from tutti.kube.objects import Taint, Toleration
from tutti.kube.taints import first_untolerated, merge_tolerations, tolerates, with_toleration


def toleration(**fields):
    return msgspec.convert(fields, Toleration)


TAINT = Taint(key="gpu", value="a100", effect="NoSchedule")


@pytest.mark.parametrize(
    ("fields", "expected"),
    [
        ({"operator": "Exists"}, True),
        ({"key": "gpu", "operator": "Exists"}, True),
        ({"key": "gpu", "value": "a100"}, True),
        ({"key": "gpu", "value": "a100", "effect": "NoExecute"}, False),
        ({"key": "gpu"}, False),
        ({"key": "cpu", "operator": "Exists"}, False),
        ({"key": "gpu", "operator": "Gt", "value": "1"}, False),
    ],
)
def test_tolerates(fields, expected):
    assert tolerates(toleration(**fields), TAINT) is expected


def test_prefer_no_schedule_taints_keep_no_pod_off():
    soft = Taint(key="a", effect="PreferNoSchedule")
    assert first_untolerated([soft], []) is None
    assert first_untolerated([soft, TAINT], []) is TAINT


def test_a_wider_toleration_replaces_narrower_tolerations():
    wide = toleration(key="gpu", operator="Exists")
    narrow = toleration(key="gpu", operator="Equal", value="a100", effect="NoSchedule")
    assert merge_tolerations([narrow], [wide]) == [wide]
    assert merge_tolerations([wide], [narrow, wide]) == [wide]


def test_a_toleration_replaces_the_toleration_of_the_same_taint():
    short = toleration(key="a", operator="Exists", effect="NoExecute", tolerationSeconds=5)
    forever = toleration(key="a", operator="Exists", effect="NoExecute")
    assert with_toleration([short], forever) == [forever]
    assert len(with_toleration([toleration(key="b")], forever)) == 2
