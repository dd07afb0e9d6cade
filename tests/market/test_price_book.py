"""The price book, and tables of the user's own."""

import pytest

from tutti.exceptions import InputError
from tutti.kube.reading.sources import Source
from tutti.market.price_book import PriceBook, region_of
from tutti.market.price_csv import read_price_table


def table(text):
    return read_price_table(Source("prices.csv", text.encode()))


def test_the_packaged_book_has_prices_and_shapes():
    book = PriceBook()
    assert book.price("m5.xlarge", "us-east-1") == 192_000_000
    assert 64_000_000 < book.price("m5.xlarge", zone="us-east-1a", capacity_type="spot") < 74_000_000
    assert book.price("m5.xlarge", "eu-central-9") is None
    assert book.price("nothing.large", "us-east-1") is None
    shape = book.shape("g4dn.xlarge", "us-east-1")
    assert (shape.vcpus, shape.memory, shape.gpus, shape.max_pods, shape.arch) == (4, 16 * 2**30, 1, 29, "amd64")
    assert book.shape("m6g.large").arch == "arm64"
    assert book.shape("inf1.xlarge").gpus == 0  # an accelerator, but no GPU


@pytest.mark.parametrize(
    ("zone", "region"),
    [("eu-west-1a", "eu-west-1"), ("europe-west1-d", "europe-west1"), ("westeurope-2", "westeurope"), ("rack 7", "")],
)
def test_a_zone_tells_its_region(zone, region):
    assert region_of(zone) == region


def test_rows_of_the_user_come_first_and_the_narrowest_wins():
    book = PriceBook(
        table(
            "instance_type,usd_hour,capacity_type,zone\nm5.large,0.05,,\nm5.large,0.04,,eu-west-1a\nm5.large,0.01,spot,\n"
        )
    )
    assert book.price("m5.large", "eu-west-1", zone="eu-west-1b") == 50_000_000
    assert book.price("m5.large", "eu-west-1", zone="eu-west-1a") == 40_000_000
    assert book.price("m5.large", "eu-west-1", capacity_type="spot") == 10_000_000
    assert book.price("m5.xlarge", "eu-west-1") == 214_000_000


def test_prices_of_a_row_may_be_rounded_and_a_size_needs_no_price():
    row, size = table("instance_type,usd_hour,usd_month,cpu,memory\na,0.0249,18.2,,\nb,,,2,8Gi\n")
    assert (row.price, size.price) == (24_900_000, None)
    assert size.allocatable == {"cpu": "2", "memory": "8Gi"}


def test_monthly_prices_and_sizes():
    row, other = table("instance_type,usd_month,cpu,memory_ki,pods,note\na,73,1920m,6776184,110,x\nb,7.3,,,110,y\n")
    assert row.price == 100_000_000
    assert row.allocatable == {"cpu": "1920m", "memory": "6776184Ki", "pods": "110"}
    assert (other.price, other.allocatable) == (10_000_000, None)


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("a,b\n1,2\n", "prices.csv: no column instance_type in its first line"),
        ("instance_type,x\n1,2\n", "no column usd_hour, usd_month or on_demand_usd_h"),
        ("instance_type,usd_hour\nm5.large,abc\n", 'prices.csv: line 2: usd_hour: "abc" is not an amount of dollars'),
        ("instance_type,usd_hour\n\nm5.large,-1\n", "line 3: usd_hour"),
        ("instance_type,usd_hour\n,1\n", "line 2: instance_type: an instance type is required"),
        ("instance_type,usd_hour,cpu,memory\na,1,x,1Gi\n", 'line 2: cpu: "x" is not a quantity'),
        ("instance_type,usd_hour,capacity_type\na,1,cheap\n", 'line 2: capacity_type: "cheap" is not a capacity type'),
        ("instance_type,usd_hour\na,1,2\n", "line 2: 3 cells"),
        ("", "there is no price in it"),
        (
            "instance_type,usd_hour,usd_month\na,0.1,73\nb,0.1,80\n",
            'prices.csv: line 3: usd_month: "80" contradicts the "0.1" of usd_hour: a month has 730 hours',
        ),
        (
            "instance_type,usd_hour,zone\na,1,z\na,1,z\na,1,\na,2,z\n",
            "prices.csv: line 5: usd_hour: line 2 has another price for a on-demand in z",
        ),
        ("instance_type,usd_hour,note\na,1\nb\n", "prices.csv: line 3: usd_hour: a price, or cpu and memory"),
    ],
)
def test_bad_cells_are_named(text, problem):
    with pytest.raises(InputError) as caught:
        table(text)
    assert problem in str(caught.value)
