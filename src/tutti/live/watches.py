"""All watches of the scheduler: one reflector for each followed kind that the server has.

Kinds are discovered at the start and again from time to time, so that the CustomResourceDefinition of a gang dialect
that is installed later is picked up, and one that is removed is forgotten. A kind that the server lacks, or that this
process may not read, is a note; nodes and pods are required.

Contract: `run` ends only by cancellation; `tasks` has what broke a watch. `is_synced` is true once every kind that can
be read has been listed, and stays so; `lost` names the required kinds that cannot be followed any more.
"""

from __future__ import annotations

import asyncio
import logging
import random
from collections.abc import Callable

from tutti.client.api_client import ApiClient
from tutti.client.backoff import Backoff
from tutti.client.discovery import discover
from tutti.client.needed_kinds import CONSEQUENCES, REQUIRED, kinds_to_schedule
from tutti.client.reflector import Change, Reflector
from tutti.client.resources import Resource
from tutti.cluster.edits import Remove
from tutti.exceptions import ApiError
from tutti.live.background_tasks import BackgroundTasks

_LOG = logging.getLogger("tutti.live")
_LISTED_WITHIN = 30.0
"""Seconds after which an optional kind that cannot be listed, as with a broken conversion webhook, is a note."""
_LOOK_EVERY = 0.005
"""Seconds between two looks whether lists may begin."""
_RIGHTS_WITHIN = 10.0
"""Seconds after which an optional kind that this process may not list is a note: a server that has just started does
not know the rights of its users yet."""
_NO_RIGHT, _NOT_SERVED = (401, 403), (404, 405)
"""Statuses of a list that another attempt soon does not change."""
_LOST_AFTER = 10.0
"""Seconds without news after which a required kind counts as lost."""
_LONGEST_SILENCE = 330.0
"""Seconds within which the server is heard: the longest watch, and some more."""


class Watches:
    """See the module's docstring; `report` gets the changes of each piece of a stream, in the event loop.

    No list begins before `may_list` is true.
    """

    def __init__(
        self,
        client: ApiClient,
        report: Callable[[list[Change]], None],
        *,
        monotonic: Callable[[], float],
        draw: random.Random,
        rediscover_every: float,
        may_list: Callable[[], bool],
    ) -> None:
        self._client, self._report, self._monotonic, self._draw = client, report, monotonic, draw
        self._rediscover_every, self._may_list = rediscover_every, may_list
        self._reflectors: dict[str, Reflector] = {}
        self._followed_since: dict[str, float] = {}
        self.tasks = BackgroundTasks()
        self._task_of: dict[str, asyncio.Task[None]] = {}
        self._is_discovered = self._is_synced = False
        self._noted: set[str] = set()
        self.problem: ApiError | None = None
        """Why the last discovery failed."""

    @property
    def reflectors(self) -> dict[str, Reflector]:
        """The reflectors by kind."""
        return self._reflectors

    def resource(self, kind: str) -> Resource | None:
        """Return how the server serves a kind; None if it does not."""
        reflector = self._reflectors.get(kind)
        return reflector.resource if reflector is not None else None

    @property
    def is_synced(self) -> bool:
        """Whether all kinds that can be read have been listed; kinds that come later do not change that."""
        if not self._is_synced and self._is_discovered and all(kind in self._reflectors for kind in REQUIRED):
            self._is_synced = all(self._is_listed(kind) for kind in self._reflectors)
        return self._is_synced

    def lost(self, seconds: float = _LOST_AFTER) -> list[str]:
        """Return the names of the required kinds that were listed and have not been heard of for that long."""
        kinds = [self._reflectors[kind] for kind in REQUIRED if kind in self._reflectors]
        return [each.resource.name for each in kinds if each.synced.is_set() and self._lost_for(each) > seconds]

    def _lost_for(self, reflector: Reflector) -> float:
        """Return for how many seconds a watch has been silent although it should have been heard."""
        silence = self._monotonic() - reflector.heard_at
        return silence if reflector.problem is not None else silence - _LONGEST_SILENCE

    def _is_listed(self, kind: str) -> bool:
        reflector = self._reflectors[kind]
        if reflector.synced.is_set():
            return True
        problem = reflector.problem
        if kind in REQUIRED or problem is None:
            return False
        if problem.status in _NOT_SERVED:
            return True
        within = _RIGHTS_WITHIN if problem.status in _NO_RIGHT else _LISTED_WITHIN
        return self._monotonic() - self._followed_since[kind] > within

    def unlisted(self) -> list[str]:
        """Return the names of the kinds that must be listed before this process can schedule."""
        missing = [kind for kind in REQUIRED if self._is_discovered and kind not in self._reflectors]
        unlisted = [kind for kind in self._reflectors if not self._is_listed(kind)]
        return [*missing, *(self._reflectors[kind].resource.name for kind in unlisted)]

    def notes(self) -> list[str]:
        """Return a line for each kind that cannot be read, with what follows."""
        notes = []
        for kind, reflector in self._reflectors.items():
            problem = reflector.problem
            if problem is not None and (not reflector.synced.is_set() or problem.status in (*_NO_RIGHT, *_NOT_SERVED)):
                notes.append(f"{reflector.resource.name} cannot be read: {_consequence(kind)}: {problem}")
        if self._is_discovered:
            missing = [kind for kind in REQUIRED if kind not in self._reflectors]
            notes += [f"the server has no {kind}: {_consequence(kind)}" for kind in missing]
        if self.problem is not None:
            notes.append(f"the kinds of the server cannot be read: {self.problem}")
        return notes

    async def relist_pods(self) -> None:
        """List all pods once more, and return when that list is complete."""
        reflector = self._reflectors["Pod"]
        lists = reflector.lists
        reflector.relist()
        self._restart("Pod", reflector)
        while reflector.lists == lists:
            await asyncio.sleep(0.01)

    async def run(self) -> None:
        """Follow all kinds until cancelled."""
        backoff = Backoff(self._draw, longest=10.0)
        try:
            while True:
                try:
                    found = await discover(self._client)
                except ApiError as error:
                    self.problem = error
                    self._log_new_notes()
                    await asyncio.sleep(backoff.next(error.retry_after))
                    continue
                self.problem = None
                backoff.reset()
                while not self._may_list():
                    await asyncio.sleep(_LOOK_EVERY)
                self._follow({kind: found.resources[kind] for kind in kinds_to_schedule() if kind in found.resources})
                gone = [kind for kind in self._reflectors if kind not in found.resources]
                self._forget([k for k in gone if self._reflectors[k].resource.group not in found.stale_groups])
                self._is_discovered = True
                await self._note_problems()
        finally:
            await self.tasks.cancel()

    async def _note_problems(self) -> None:
        """Log new notes until it is time to discover again."""
        end = self._monotonic() + self._rediscover_every
        while (left := end - self._monotonic()) > 0:
            self._log_new_notes()
            await asyncio.sleep(min(left, 1.0))

    def _log_new_notes(self) -> None:
        notes = self.notes()
        for note in notes:
            if note not in self._noted:
                _LOG.warning("%s", note)
        self._noted = set(notes)

    def _follow(self, resources: dict[str, Resource]) -> None:
        for kind, resource in resources.items():
            known = self._reflectors.get(kind)
            if known is not None and known.resource == resource:
                continue
            if known is not None:
                self._forget([kind])
            reflector = Reflector(self._client, resource, self._report, monotonic=self._monotonic, draw=self._draw)
            self._reflectors[kind] = reflector
            self._followed_since[kind] = self._monotonic()
            self._restart(kind, reflector)

    def _restart(self, kind: str, reflector: Reflector) -> None:
        task = self._task_of.pop(kind, None)
        if task is not None:
            task.cancel()
        self._task_of[kind] = self.tasks.start(reflector.run(), name=f"watch {kind}")

    def _forget(self, kinds: list[str]) -> None:
        """Stop following kinds that the server no longer has, or has in another version."""
        for kind in kinds:
            self._task_of.pop(kind).cancel()
            reflector = self._reflectors.pop(kind)
            # Without uids: the same objects come back if the kind does.
            removed: list[Change] = [Remove(kind, key) for key, _ in reflector.known_uids()]
            if removed:
                self._report(removed)


def _consequence(kind: str) -> str:
    return "nothing can be scheduled" if kind in REQUIRED else CONSEQUENCES[kind]
