"""Plans, explanations, recommendations and comparisons as tables, text and the report page.

- `tables`       tables as kubectl prints them, JSON and YAML
- `plan_table`, `gang_plan_table`  plans; `pod_explanation_text`, `gang_explanation_text`  explanations
- `recommendation_text`, `recommendation_names`, `comparison_text`, `scale_down_text`, `scale_down_comparison_text`
  recommendations
- `scaling_story_text`  a scaling simulation; `report` the page
"""
