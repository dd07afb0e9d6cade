"""What pods occupy on nodes besides resources: host ports, and volumes by claim or by disk.

Few pods have either, so these are maps of the rows that matter, not columns. Both are kept by every edit that moves a
pod.
"""

from __future__ import annotations

import numpy as np

from tutti.cluster.columns import Bools, Rows
from tutti.cluster.edits import SetPortAddresses
from tutti.cluster.spec_classes import SpecClass

ANY_ADDRESS = "0.0.0.0"
"""What a host port without an address stands for."""
Port = tuple[str, str, int]


class Occupancy:
    """Host ports and volume users per row."""

    def __init__(self) -> None:
        self.ports: dict[tuple[str, int], dict[int, set[str]]] = {}
        """(protocol, port) -> row -> addresses. As in kube-scheduler this is a set: where two pods were forced onto a
        node with the same port, the port is free as soon as one of them leaves."""
        self.volume_pods: dict[int, set[int]] = {}
        """Row -> rows of its pods that have volumes."""
        self.claim_users: dict[str, int] = {}
        """Claim -> how many pods on nodes use it."""

    def move(self, row: int, pod: int, spec: SpecClass, number: int) -> None:
        """Follow a pod that comes to a row (1) or leaves it (-1)."""
        for address, protocol, port in spec.ports:
            rows = self.ports.setdefault((protocol, port), {})
            addresses = rows.setdefault(row, set())
            (addresses.add if number > 0 else addresses.discard)(address)
            if not addresses:
                del rows[row]
        if not spec.volumes:
            return
        pods = self.volume_pods.setdefault(row, set())
        (pods.add if number > 0 else pods.discard)(pod)
        for claim in {v.persistent_volume_claim.claim_name for v in spec.volumes if v.persistent_volume_claim}:
            key = f"{spec.namespace}/{claim}"
            self.claim_users[key] = self.claim_users.get(key, 0) + number
            if not self.claim_users[key]:
                del self.claim_users[key]

    def taken(self, row: int, spec: SpecClass) -> list[SetPortAddresses]:
        """Give the edits that bring the pod's ports on a row back to what they are now."""
        ports = {(protocol, port) for _, protocol, port in spec.ports}
        return [SetPortAddresses(row, *key, frozenset(self.ports.get(key, {}).get(row, ()))) for key in sorted(ports)]

    def restore(self, edit: SetPortAddresses) -> None:
        """Bring one port back."""
        rows = self.ports.setdefault((edit.protocol, edit.port), {})
        if edit.addresses:
            rows[edit.row] = set(edit.addresses)
        else:
            rows.pop(edit.row, None)

    def clashing(self, wanted: tuple[Port, ...], rows: Rows | slice, size: int) -> Bools:
        """Say for each row whether one of the wanted ports is taken there."""
        taken = np.zeros(size, dtype=bool)
        for address, protocol, port in wanted:
            for row, addresses in self.ports.get((protocol, port), {}).items():
                if address == ANY_ADDRESS or ANY_ADDRESS in addresses or address in addresses:
                    taken[row] = True
        clashes: Bools = taken[rows]
        return clashes

    def copy(self) -> Occupancy:
        """Copy the maps."""
        twin = Occupancy()
        twin.ports = {port: {row: set(a) for row, a in rows.items()} for port, rows in self.ports.items()}
        twin.volume_pods = {row: set(pods) for row, pods in self.volume_pods.items()}
        twin.claim_users = dict(self.claim_users)
        return twin
