"""Occupancy: host ports and volumes that the pods on each node use.

Few pods use either, so both are dictionaries of the rows in use and not columns. Every edit that moves a pod updates
both.
"""

from __future__ import annotations

import numpy as np

from tutti.cluster.columns import Bools, Rows
from tutti.cluster.edits import SetPortAddresses
from tutti.cluster.spec_classes import SpecClass

ANY_ADDRESS = "0.0.0.0"
"""The address of a host port without `hostIP`."""
Port = tuple[str, str, int]


class Occupancy:
    """Host ports and volume users per row."""

    def __init__(self) -> None:
        self.ports: dict[tuple[str, int], dict[int, set[str]]] = {}
        """(protocol, port) -> row -> addresses. As in kube-scheduler, the addresses are a set: if two pods on a node
        use the same port, the port becomes free when the first of them leaves."""
        self.volume_pods: dict[int, set[int]] = {}
        """Node row -> rows of its pods that have volumes."""
        self.claim_users: dict[str, int] = {}
        """Claim key -> number of bound pods that use the claim."""

    def move(self, row: int, pod: int, spec: SpecClass, number: int) -> None:
        """Add a pod to a row (1) or remove it (-1)."""
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

    def port_edits(self, row: int, spec: SpecClass) -> list[SetPortAddresses]:
        """Return the edits that restore the current addresses of a pod's ports on a row."""
        ports = {(protocol, port) for _, protocol, port in spec.ports}
        return [SetPortAddresses(row, *key, frozenset(self.ports.get(key, {}).get(row, ()))) for key in sorted(ports)]

    def restore(self, edit: SetPortAddresses) -> None:
        """Restore the addresses of one port."""
        rows = self.ports.setdefault((edit.protocol, edit.port), {})
        if edit.addresses:
            rows[edit.row] = set(edit.addresses)
        else:
            rows.pop(edit.row, None)

    def port_conflicts(self, wanted: tuple[Port, ...], rows: Rows | slice, size: int) -> Bools:
        """Return for each row whether one of the wanted ports is in use."""
        in_use = np.zeros(size, dtype=bool)
        for address, protocol, port in wanted:
            for row, addresses in self.ports.get((protocol, port), {}).items():
                if address == ANY_ADDRESS or ANY_ADDRESS in addresses or address in addresses:
                    in_use[row] = True
        conflicts: Bools = in_use[rows]
        return conflicts

    def copy(self) -> Occupancy:
        """Copy the maps."""
        clone = Occupancy()
        clone.ports = {port: {row: set(a) for row, a in rows.items()} for port, rows in self.ports.items()}
        clone.volume_pods = {row: set(pods) for row, pods in self.volume_pods.items()}
        clone.claim_users = dict(self.claim_users)
        return clone
