"""Services, found by the pods that they select.

A service stands under one label pair that every pod it selects has, so that finding the services of a pod costs its
labels and not the number of services.
"""

from __future__ import annotations

from tutti.kube.objects import Pod, Service


class ServiceIndex:
    """The services that have a selector; one without any selects nothing that matters."""

    def __init__(self) -> None:
        self._by_pair: dict[tuple[str, str, str], dict[str, Service]] = {}
        """(namespace, label, value) -> name -> service."""
        self._pair_of: dict[str, tuple[str, str, str]] = {}

    def put(self, service: Service) -> None:
        """Add a service, or replace the one of the same name."""
        self.remove(service)
        if service.spec.selector:
            pair = (service.metadata.namespace or "default", *min(service.spec.selector.items()))
            self._by_pair.setdefault(pair, {})[service.metadata.name] = service
            self._pair_of[service.key] = pair

    def remove(self, service: Service) -> None:
        """Forget the service of that name, if it is known."""
        pair = self._pair_of.pop(service.key, None)
        if pair is not None:
            del self._by_pair[pair][service.metadata.name]

    def of(self, pod: Pod) -> list[Service]:
        """Give the services that select a pod."""
        namespace, labels = pod.metadata.namespace or "default", pod.metadata.labels or {}
        near = [s for pair in labels.items() for s in self._by_pair.get((namespace, *pair), {}).values()]
        return [s for s in near if all(labels.get(k) == v for k, v in (s.spec.selector or {}).items())]

    def copy(self) -> ServiceIndex:
        """Copy the index."""
        twin = ServiceIndex()
        twin._by_pair = {pair: dict(services) for pair, services in self._by_pair.items()}
        twin._pair_of = dict(self._pair_of)
        return twin
