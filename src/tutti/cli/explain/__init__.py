"""`tutti explain`: `command` explains one pod or one gang.

The use case is `app.explain`; `present.pod_explanation_text` and `present.gang_explanation_text` format its result.
"""
