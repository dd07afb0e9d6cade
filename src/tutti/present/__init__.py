"""Plans, explanations, recommendations and comparisons as text, data and the report page; pure.

- `tables`                    tables as kubectl prints them, JSON and YAML
- `plan_table`                the table that `tutti schedule` prints: `pod_plan_table` without gangs, `gang_plan_table`
                              with gangs, `plan_rows` what both share
- `pod_explanation_text`, `gang_explanation_text`  what `tutti explain` prints
- `recommendation_text`       what `tutti recommend` prints; `scale_down_text` with --down, `recommendation_names`
                              with -o name
- `comparison_text`, `scale_down_comparison_text`  what it prints with --compare
- `scaling_simulation_text`   what `tutti scalesim` prints
- `report`                    the HTML page of --report
"""
