"""Formats of other programs, in and out; all of them become the one `Request`.

- `formats`  tells formats apart and makes requests; `document` is what all readers take
- `tutti_api`, `gardener`, `scaling_advisor`, `scenarios`  one package per format
- `kubernetes_objects`, `catalogue`, `guess_controllers`, `merged_scale_ups`, `case_folding`, `field_names`  shared
"""
