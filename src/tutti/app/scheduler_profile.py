"""The scheduler's profile: the default profile, or one of a KubeSchedulerConfiguration."""

from __future__ import annotations

from tutti.engine.config import profile_loader
from tutti.engine.placement.profile import Profile
from tutti.kube.reading.sources import Source


def scheduler_profile(configuration: Source | None, scheduler_name: str | None = None) -> Profile:
    """Return the profile of the scheduler with this name; without a configuration, the default profile."""
    if configuration is not None:
        file = configuration.name
        return profile_loader.load_profile(configuration.data, file=file, scheduler_name=scheduler_name)
    default = Profile.default()
    return default._replace(scheduler_name=scheduler_name) if scheduler_name else default
