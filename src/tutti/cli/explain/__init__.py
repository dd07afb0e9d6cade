"""`tutti explain`; `command` is the click command.

The use case is `app.explain`, its text `present.pod_explanation_text` and `present.gang_explanation_text`.
"""
