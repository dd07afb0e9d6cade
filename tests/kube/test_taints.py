"""Tolerations as kube-scheduler reads them."""

import msgspec
import pytest

from tutti.kube.objects import Taint, Toleration
from tutti.kube.taints import first_untolerated, merged, tolerates, with_toleration


def toleration(**fields):
    return msgspec.convert(fields, Toleration)


TAINT = Taint(key="gpu", value="a100", effect="NoSchedule")


@pytest.mark.parametrize(
    ("fields", "borne"),
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
def test_tolerates(fields, borne):
    assert tolerates(toleration(**fields), TAINT) is borne


def test_soft_taints_keep_nobody_off():
    soft = Taint(key="a", effect="PreferNoSchedule")
    assert first_untolerated([soft], []) is None
    assert first_untolerated([soft, TAINT], []) is TAINT


def test_a_wider_toleration_takes_the_place_of_narrow_ones():
    wide = toleration(key="gpu", operator="Exists")
    narrow = toleration(key="gpu", operator="Equal", value="a100", effect="NoSchedule")
    assert merged([narrow], [wide]) == [wide]
    assert merged([wide], [narrow, wide]) == [wide]


def test_a_toleration_is_put_in_the_place_of_its_like():
    short = toleration(key="a", operator="Exists", effect="NoExecute", tolerationSeconds=5)
    forever = toleration(key="a", operator="Exists", effect="NoExecute")
    assert with_toleration([short], forever) == [forever]
    assert len(with_toleration([toleration(key="b")], forever)) == 2
