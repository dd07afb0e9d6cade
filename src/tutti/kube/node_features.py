"""Which features a node must declare (`status.declaredFeatures`) to run a pod.

Contract: pure. The rules are those by which kube-scheduler 1.37 infers the requirements of a pod that it schedules
(component-helpers/nodedeclaredfeatures, `InferForScheduling`). Ephemeral containers are not read: they join pods that
run already.
"""

from __future__ import annotations

from tutti.kube.objects import Container, PodSpec

RESTART_ALL = "RestartAllContainersOnContainerExits"
USER_NAMESPACES_HOST_NETWORK = "UserNamespacesHostNetworkSupport"
BIND_MOUNT_OPTIONS = "VolumeBindMountOptions"


def required_features(spec: PodSpec) -> tuple[str, ...]:
    """Return the names of the features that a pod needs, sorted."""
    containers = (*(spec.init_containers or ()), *(spec.containers or ()))
    features = []
    if any(_restarts_all_containers(container) for container in containers):
        features.append(RESTART_ALL)
    if needs_user_namespace_on_host_network(spec):
        features.append(USER_NAMESPACES_HOST_NETWORK)
    if any(_has_bind_mount_options(container) for container in containers):
        features.append(BIND_MOUNT_OPTIONS)
    return tuple(features)


def needs_user_namespace_on_host_network(spec: PodSpec) -> bool:
    """Return whether a pod uses the network of the host and a user namespace of its own."""
    return bool(spec.host_network) and spec.host_users is False


def _restarts_all_containers(container: Container) -> bool:
    return any(rule.action == "RestartAllContainers" for rule in container.restart_policy_rules or ())


def _has_bind_mount_options(container: Container) -> bool:
    return any(mount.bind_mount_options for mount in container.volume_mounts or ())
