"""The credential that a program gives: when the program runs, and what holds while it fails.

Contract: the program runs when there is no credential, shortly before the credential expires, and after the server has
rejected the credential; once at a time, for all requests, and at most once in `_PAUSE` seconds. A credential stays in
use until it expires. If the program fails and there never was a credential, that is an `InputError`: the user can mend
it. Later it is an `ApiError` without a status, as if the server had not answered, because it may only be a moment.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from tutti.client.access.cluster_access import ClusterAccess, ExecCommand
from tutti.client.access.exec_plugin import ExecCredential, run_exec_plugin
from tutti.exceptions import ApiError, InputError

_EXPIRY_MARGIN = 10_000_000
"""Microseconds before the expiry at which the program is asked again."""
_PAUSE = 2.0
"""Seconds between the end of a run and the next run."""


class ExecCredentials:
    """See the module's docstring; `monotonic` returns seconds, `wall` microseconds since 1970."""

    def __init__(
        self, command: ExecCommand, access: ClusterAccess, *, monotonic: Callable[[], float], wall: Callable[[], int]
    ) -> None:
        self._command, self._access = command, access
        self._monotonic, self._wall = monotonic, wall
        self.given: ExecCredential | None = None
        """What the program gave last; None if the server has rejected that."""
        self._was_given = False
        self._problem: InputError | None = None
        """Why the last run gave nothing."""
        self._run: asyncio.Task[None] | None = None
        self._next_run = float("-inf")

    async def close(self) -> None:
        """End a program that still runs."""
        if self._run is not None:
            self._run.cancel()
            await asyncio.gather(self._run, return_exceptions=True)

    async def credential(self) -> ExecCredential:
        """Return the credential for the next request; run the program if that is necessary."""
        given = self.given
        if given is not None and not self._expires_within(given, _EXPIRY_MARGIN):
            return given
        if self._run is None and self._monotonic() >= self._next_run:
            self._run = asyncio.create_task(self._ask())
        if given is not None and not self._expires_within(given, 0):
            return given  # the program runs meanwhile
        if self._run is not None:
            await asyncio.shield(self._run)  # it goes on for others if this request ends
        problem = self._problem
        if problem is None and self.given is not None:
            return self.given  # for a moment even if it seems to have expired: the clock of this machine may be wrong
        if problem is not None and not self._was_given:
            raise InputError(problem.problem, file=problem.file, field=problem.field)
        raise ApiError(f"no credentials: {problem}")

    def reject(self) -> bool:
        """Note that the server does not accept what was given last; return whether another may come."""
        if self._monotonic() < self._next_run:
            return False  # the program has just run
        self.given = None
        return True

    async def _ask(self) -> None:
        """Run the program and note what became of that."""
        try:
            self.given = await run_exec_plugin(self._command, self._access)
            self._was_given, self._problem = True, None
        except InputError as error:
            self._problem = error
        finally:
            self._run, self._next_run = None, self._monotonic() + _PAUSE

    def _expires_within(self, given: ExecCredential, microseconds: int) -> bool:
        return given.expires is not None and given.expires - microseconds <= self._wall()
