"""The plainest dialect: an annotation on every pod names its group, and nothing else describes it.

Pods say ``pod-group`` or ``pod_group``. All of them start together: the minimum is the number of pods that name the
group, finished ones left out (`dialect.waiting_or_running`), unless tutti.dev/min-member says how many.
"""

from __future__ import annotations

from collections.abc import Sequence

from tutti.kube.gangs.dialect import Dialect, Find, Texts, distinct
from tutti.kube.gangs.gang import Gang
from tutti.kube.gangs.tutti_annotations import counted_minimum
from tutti.kube.objects import Pod

_DASH, _UNDERSCORE = "pod-group", "pod_group"


class PlainAnnotation(Dialect):
    """See the module's contract."""

    NAME = "annotation"
    MARKS = frozenset((_DASH, _UNDERSCORE))
    STATES_SIZE = False

    def names(self, pod: Pod, labels: Texts, annotations: Texts) -> Sequence[str]:
        """The groups that a pod names."""
        return distinct(annotations.get(_DASH), annotations.get(_UNDERSCORE))

    def read(self, key: str, members: Sequence[Pod], find: Find) -> Gang:
        """What the pods say."""
        return Gang(key=key, dialect=self.NAME, minimum=counted_minimum(members))
