"""The HTML report of a recommendation: one page that opens from a file, without a network and without a server.

Contract: pure functions from records to HTML text. `markup` escapes every text from the input, because anybody who can
create pods chooses their names. The page's Content-Security-Policy forbids all requests, and all scripts and styles
except the two that are part of the page.

- `page`                 Which sections does the page have? `headline` is its top, `report_tables` has tables.
- `markup`               How are elements built and texts escaped?
- `drawing_data`         Which nodes and pods are drawn? `node_boxes` draws nodes, `node_resources` the pods on a node.
- `treemap`, `amounts`   How is a rectangle divided among pods, and how are amounts written?
- `charts`               How do the bars of costs look? `scale_down_section`: which nodes can be removed?
"""
