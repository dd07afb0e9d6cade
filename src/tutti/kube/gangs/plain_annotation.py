"""The simplest dialect: an annotation on every pod names its group, and there is no group object.

The annotation is ``pod-group`` or ``pod_group``. The minimum is tutti.dev/min-member; without that annotation it is the
number of unfinished pods that name the group (`dialect.unfinished_pods`).
"""

from __future__ import annotations

from collections.abc import Sequence

from tutti.kube.gangs.dialect import Dialect, Find, StringMap, distinct_names
from tutti.kube.gangs.gang import Gang
from tutti.kube.gangs.tutti_annotations import minimum_from_members
from tutti.kube.objects import Pod

_DASH, _UNDERSCORE = "pod-group", "pod_group"


class PlainAnnotation(Dialect):
    """The dialect of the annotation ``pod-group``; the module's docstring has the rules."""

    NAME = "annotation"
    GROUP_KEYS = frozenset((_DASH, _UNDERSCORE))
    STATES_SIZE = False

    def group_names(self, pod: Pod, labels: StringMap, annotations: StringMap) -> Sequence[str]:
        """Return the groups that a pod names."""
        return distinct_names(annotations.get(_DASH), annotations.get(_UNDERSCORE))

    def read(self, key: str, members: Sequence[Pod], find: Find) -> Gang:
        """Read the gang from its pods."""
        minimum, is_counted = minimum_from_members(members)
        return Gang(key=key, dialect=self.NAME, minimum=minimum, is_counted=is_counted)
