"""Formats results for users: text, JSON data, and the HTML report page. Pure functions, no input or output.

- `tables`                    How does a table, a JSON or a YAML document look?
- `plan_table`                What does `tutti schedule` print? `pod_plan_table` formats plans without gangs,
                              `gang_plan_table` plans with gangs, `plan_rows` has the columns that both share.
- `pod_explanation_text`, `gang_explanation_text`  What does `tutti explain` print for a pod, for a gang?
- `recommendation_text`       What does `tutti recommend` print? `scale_down_text`: with --down.
                              `recommendation_names`: with -o name.
- `comparison_text`, `scale_down_comparison_text`  What does --compare print about purchases, about scale-downs?
- `replay_text`               What does `tutti replay` print?
- `scaling_simulation_text`   What does `tutti scalesim` print?
- `prometheus_text`           How do counters, gauges and histograms look on a page for Prometheus?
- `inspection`                What does `tutti inspect` print?
- `report`                    What is on the HTML page of --report?
"""
