"""Gangs: pods that start together or not at all, read from every dialect of gang scheduling.

- `gang`: what does Tutti know about a gang?
- `reader`: to which gang does a pod belong, and how do pods and group objects become gangs?
- `dialect`: what must a dialect implement, and which helpers do dialects share?
- `native`: how does Kubernetes' own PodGroup declare a gang? (`native_policy`: its fields; `native_composite`:
  trees of CompositePodGroups)
- `coscheduling`, `volcano`, `kueue`, `kai`, `yunikorn`, `fluence`: how does that scheduler declare a gang?
- `plain_annotation`: which gang do pods form that only have the annotation ``pod-group``?
- `tutti_annotations`: what do the annotations of tutti.dev add to a gang of any dialect?
"""
