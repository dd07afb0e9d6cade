"""Gangs, pods that start together or not at all, read from every dialect that names them.

`gang` is the record, `reader` makes it, `dialect` says what a dialect is; then one file per dialect: `native` (with
`native_policy` and `native_composite`), `coscheduling`, `volcano`, `kueue`, `kai`, `yunikorn`, `fluence`,
`plain_annotation`; `tutti_annotations` are what Tutti adds to all of them.
"""
