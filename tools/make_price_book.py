"""Make the packaged price book from a table of EC2 types and prices.

    python tools/make_price_book.py aws_ec2_prices.csv [src/tutti/market/data/aws.csv.gz]

The table has a row for every region and instance type: size, accelerators, pods, on-demand price, median spot price and
number of zones. The book has `COLUMNS`, sorted, and is the same bytes for the same table, so it changes only with it.
Accelerators stay only where they are whole NVIDIA GPUs: those are what nvidia.com/gpu counts.
"""

from __future__ import annotations

import csv
import gzip
import io
import sys
from pathlib import Path

COLUMNS = (
    "region", "instance_type", "arch", "vcpus", "memory_gib", "gpus", "gpu_name", "max_pods", "on_demand", "spot",
    "zones",
)  # fmt: skip
BOOK = Path(__file__).parent.parent / "src/tutti/market/data/aws.csv.gz"


def row_of(row: dict[str, str]) -> list[str]:
    """A row of the book."""
    count = float(row["accel_count"] or 0)
    has_gpus = row["accel_maker"].upper() == "NVIDIA" and count >= 1 and count == int(count)
    return [
        row["region"],
        row["instance_type"],
        row["arch"],
        row["vcpus"],
        row["memory_gib"],
        str(int(count)) if has_gpus else "",
        row["accel_name"].lower() if has_gpus else "",
        row["max_pods"],
        row["on_demand_usd_h"],
        row["spot_median_usd_h"],
        row["zones"],
    ]


def main() -> None:
    """See the module."""
    table, book = Path(sys.argv[1]), Path(sys.argv[2]) if len(sys.argv) > 2 else BOOK
    with table.open(newline="", encoding="utf-8") as file:
        rows = sorted(row_of(row) for row in csv.DictReader(file))
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(COLUMNS)
    writer.writerows(rows)
    data = gzip.compress(text.getvalue().encode(), 9, mtime=0)
    book.parent.mkdir(parents=True, exist_ok=True)
    book.write_bytes(data)
    print(f"{len(rows)} rows, {len(data)} bytes: {book}")


if __name__ == "__main__":
    main()
