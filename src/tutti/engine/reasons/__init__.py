"""Why a pod or a gang cannot be placed.

`pod_failure` words it as kube-scheduler does, `gang_shortage` says how much of a gang would fit and what stops the
rest, `domain_fits` says it per topology domain.
"""
