"""The report: one page about a recommendation that opens from a file, without a network and without a server.

Contract: pure functions from records to HTML text; `cli.recommend.write_report` writes the file. Every text that comes
from the input goes through `markup`, which escapes it: names of pods are written by strangers. The page's policy
forbids all requests, and all scripts and styles but its own two.

- `page`           the whole page; `headline` its top, `markup` escaped elements
- `drawing_data`   which nodes and pods are drawn; `node_boxes` draws nodes, `node_resources` their pods,
                   `treemap` divides rectangles, `amounts` words amounts
- `charts`         bars of costs; `scale_down_section`, `report_tables` the other sections
"""
