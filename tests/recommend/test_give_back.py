"""What a cluster gives back: on a hundred generated clusters nothing is lost, and small ones by hand."""

import time

import pytest
from msgspec.structs import replace

from tests.shrink_clusters import broken, cluster, request
from tutti.recommend.ask import ask
from tutti.recommend.request import Binder, Deadline, Down, Options


def given_back(objects, pools, *, seconds=1.0, binder=Binder.KUBE_SCHEDULER, **down):
    asked = request(objects, pools, Options(down=Down(**down), binder=binder))
    return asked, ask(asked, Deadline(time.monotonic, seconds))


@pytest.mark.parametrize("block", range(10))
def test_nothing_is_lost(block):
    for seed in range(block * 10, block * 10 + 10):
        objects, pools = cluster(seed)
        asked, answer = given_back(objects, pools)
        assert not broken(objects, asked, answer), f"seed {seed}"
