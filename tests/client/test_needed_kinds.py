"""The table of the kinds that a use case reads."""

from __future__ import annotations

from tutti.client.needed_kinds import (
    CONSEQUENCES,
    REQUIRED,
    kinds_to_dump,
    kinds_to_explain,
    kinds_to_recommend,
    kinds_to_schedule,
)
from tutti.kube.objects import KINDS


def test_a_dump_has_the_kinds_of_all_use_cases() -> None:
    dumped = set(kinds_to_dump())
    cases = (
        kinds_to_schedule(),
        kinds_to_schedule(scales=True),
        kinds_to_explain(),
        kinds_to_recommend(),
        kinds_to_recommend(down=True),
    )
    assert all(set(kinds) <= dumped for kinds in cases)
    assert dumped == set().union(*map(set, cases))


def test_only_cron_jobs_are_never_read() -> None:
    assert set(KINDS) - set(kinds_to_dump()) == {"CronJob"}


def test_every_kind_that_may_be_left_out_has_a_consequence() -> None:
    assert set(CONSEQUENCES) | set(REQUIRED) == set(kinds_to_dump())
    assert not set(CONSEQUENCES) & set(REQUIRED)


def test_what_the_use_cases_add() -> None:
    placement = set(kinds_to_schedule())
    assert set(REQUIRED) <= placement
    assert set(kinds_to_explain()) == placement
    assert set(kinds_to_schedule(scales=True)) - placement == {"Deployment", "Job", "LimitRange", "RuntimeClass"}
    daemons = {"DaemonSet", "LimitRange", "RuntimeClass"}
    assert set(kinds_to_recommend()) - placement == {*daemons, "NodePool.karpenter.sh"}
    assert set(kinds_to_recommend(has_pools=True, down=True)) - placement == {*daemons, "Job"}
