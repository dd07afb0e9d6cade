"""Karpenter's provisioning: `provisioner` runs passes of `scheduler` until one buys nothing.

`nodeclaim`, `nodeclaim_order`, `topology`, `topologygroup`, `preferences` and `instancetypes` are named after
Karpenter's own files.
"""
