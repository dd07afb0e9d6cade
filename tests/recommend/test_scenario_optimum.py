"""The older scenario files: the optimum of the reference table for each."""

import time

import pytest

from tests.support.paths import SCENARIOS
from tutti.cluster.work.work_budget import WorkBudget
from tutti.kube.reading.sources import read_sources
from tutti.market.money import a_month
from tutti.recommend.build_request import price_book
from tutti.recommend.pipeline import recommend
from tutti.recommend.records.request import Binder, Objective, RecommendOptions
from tutti.wire.request_formats import read_request

FOLDER = SCENARIOS


def answer(name, **options):
    (source,) = read_sources([str(FOLDER / name)])
    (prices,) = read_sources([str(FOLDER / "templates.csv")])
    request = read_request(source, price_book(prices), options=RecommendOptions(**{"binder": Binder.TUTTI, **options}))
    return recommend(request, WorkBudget.of_seconds(5.0, time.process_time))


@pytest.mark.parametrize(
    ("name", "bought", "cost"),
    [
        ("s1.json", {"m5.4xlarge": 2}, 291.33),
        ("s2.json", {"m5.4xlarge": 1, "m5.large": 1}, 163.87),
        ("s3.json", {"m5.4xlarge": 1, "m5.large": 2}, 182.07),
        ("s4.json", {"m5.4xlarge": 1, "m5.large": 3, "m5.xlarge": 3}, 309.55),
        ("s5.json", {"m5.2xlarge": 1, "m5.large": 1, "m5.xlarge": 1}, 127.46),
        ("scenarios.json.gz", {"n1-standard-4": 1}, 44.63),
    ],
)
def test_the_optimum(name, bought, cost):
    found = answer(name)
    assert ({each.instance_type: each.increment for each in found.scale_up}, found.left) == (bought, ())
    assert a_month(found.cost) == pytest.approx(cost, abs=0.011)
    assert found.minimal


@pytest.mark.parametrize("objective", list(Objective))
def test_where_not_all_pods_can_be_placed_as_many_as_possible_are(objective):
    assert answer("scenario_c.json.gz", objective=objective).placed == 10
