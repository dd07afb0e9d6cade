"""Recorded answers of real programs, asked again of Tutti.

- `case_files`, `formats`  reading files of cases, and telling their formats apart
- `scheduler_cases`, `gang_cases`  decisions of kube-scheduler and of gang schedulers
- `karpenter_cases`, `cluster_autoscaler_cases`, `purchase_cases`, `purchase_run`  purchases
- `models`, `model_karpenter`, `model_scale_up`, `scale_down_cases`, `scale_down_parts`  the models of autoscalers
"""
