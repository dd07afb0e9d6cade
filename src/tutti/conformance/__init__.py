"""Conformance: does Tutti give the recorded answers of real programs?

- `case_files`                how is a file of cases read?
- `case_formats`              which format is a line, and how is its case run?
- `scheduler_cases`           does Tutti decide as kube-scheduler did?
- `gang_cases`                does Tutti meet the acceptance cases of gang schedulers?
- `native_gang_cases`         is Tutti's answer to an arriving gang worse than that of kube-scheduler's gang scheduling?
- `purchase_cases`            the records of a case with a purchase
- `purchase_run`              is Tutti's purchase worse than the recorded one?
- `karpenter_cases`           how is a recorded purchase of Karpenter read?
- `cluster_autoscaler_cases`  how is a recorded scale-up of Cluster Autoscaler read?
- `scale_down_cases`          how is a recorded scale-down of Cluster Autoscaler read?
- `models`                    which checks does a model pass on a recorded line?
- `model_karpenter`           does the model of Karpenter buy what Karpenter bought?
- `model_scale_up`            does the model of Cluster Autoscaler buy what the real one bought?
- `scale_down_parts`          does the model of Cluster Autoscaler remove what the real one removed?
"""
