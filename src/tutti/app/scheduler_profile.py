"""The scheduler's profile: the default profile, or one of a KubeSchedulerConfiguration."""

from __future__ import annotations

from tutti.engine.config import profile_loader
from tutti.engine.placement.profile import Profile
from tutti.kube.reading.sources import Source


def scheduler_profile(
    configuration: Source | None, scheduler_name: str | None = None, *, preferred: str | None = None
) -> Profile:
    """Return the profile of the scheduler with this name; without a configuration, the default profile.

    `preferred` is the name to take if no name is given. A configuration without a profile of the preferred name has
    none to offer: then the name is that of default-scheduler or of the first profile.
    """
    if configuration is not None:
        return profile_loader.load_profile(
            configuration.data, file=configuration.name, scheduler_name=scheduler_name, preferred=preferred or ""
        )
    default, name = Profile.default(), scheduler_name or preferred
    return default._replace(scheduler_name=name) if name else default
