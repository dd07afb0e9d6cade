"""The status of PodGroups: that their pods were scheduled.

- `gang_completion`     when have all bindings of a gang succeeded?
- `native_status`       what does the status of Kubernetes' own PodGroups say?
- `coscheduling_status` what does that of scheduler-plugins' PodGroups say, and who writes it?
"""
