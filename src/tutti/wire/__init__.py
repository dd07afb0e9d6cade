"""Formats of other programs, in and out; all of them become the one `Request`.

- `formats`  tells formats apart; `document` looks at a document's first level
- `tutti_api`, `gardener`, `scaling_advisor`, `scenarios`  one package per format
- `kubernetes_objects`, `catalogue`, `guess_controllers`, `merged_scale_ups`, `case_folding`, `field_names`  shared
"""
