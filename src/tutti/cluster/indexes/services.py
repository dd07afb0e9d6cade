"""Service index: which Services select a pod.

The index files each Service under one label pair of its selector. A lookup costs the number of the pod's labels, not
the number of Services.
"""

from __future__ import annotations

from tutti.kube.objects import Pod, Service


class ServiceIndex:
    """The Services with a selector; a Service without a selector selects no pods."""

    def __init__(self) -> None:
        self._by_pair: dict[tuple[str, str, str], dict[str, Service]] = {}
        """(namespace, label, value) -> name -> Service."""
        self._pair_of: dict[str, tuple[str, str, str]] = {}

    def put(self, service: Service) -> None:
        """Add a Service, or replace the Service of the same name."""
        self.remove(service)
        if service.spec.selector:
            pair = (service.metadata.namespace or "default", *min(service.spec.selector.items()))
            self._by_pair.setdefault(pair, {})[service.metadata.name] = service
            self._pair_of[service.key] = pair

    def remove(self, service: Service) -> None:
        """Remove a Service, if the index has it."""
        pair = self._pair_of.pop(service.key, None)
        if pair is not None:
            services = self._by_pair[pair]
            del services[service.metadata.name]
            if not services:
                del self._by_pair[pair]

    def selecting(self, pod: Pod) -> list[Service]:
        """Return the Services that select a pod."""
        namespace, labels = pod.metadata.namespace or "default", pod.metadata.labels or {}
        candidates = [s for pair in labels.items() for s in self._by_pair.get((namespace, *pair), {}).values()]
        return [s for s in candidates if all(labels.get(k) == v for k, v in (s.spec.selector or {}).items())]

    def copy(self) -> ServiceIndex:
        """Copy the index."""
        clone = ServiceIndex()
        clone._by_pair = {pair: dict(services) for pair, services in self._by_pair.items()}
        clone._pair_of = dict(self._pair_of)
        return clone
