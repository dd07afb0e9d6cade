"""Evictions: how victims leave, and what users are told if they do not.

- `victim_requests`   how are victims evicted?
- `preemptors`        for whom does a plan evict pods, and do they still wait for that?
- `disruption_target` for whom is a victim evicted, as its condition says?
- `refused_evictions` what are preemptors told whose victims may not be evicted?
- `overdue_victims`   which victims should have left by now?
"""
