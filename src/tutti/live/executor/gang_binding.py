"""The bindings of a gang that belong together: all of them begin, or none.

Contract: `begin` looks at all pods and nodes of the gang once, before the first binding is sent. A gang that has begun
goes on: a member that fails later is left to the next session, which completes the gang elsewhere or undoes it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from tutti.engine.session.plan import Bound


class GangBinding:
    """See the module's docstring; `find_problem` returns why a pod cannot be bound by now."""

    def __init__(self, gang: str, binds: Sequence[Bound], find_problem: Callable[[Bound], str | None]) -> None:
        self.gang, self.binds = gang, tuple(binds)
        self._find_problem = find_problem
        self._has_begun = False
        self.problem: str | None = None
        """Why the gang did not begin."""

    @property
    def has_begun(self) -> bool:
        """Whether a binding of the gang may have been sent."""
        return self._has_begun

    def begin(self) -> bool:
        """Return whether the gang's bindings may be sent; the first call decides."""
        if not self._has_begun and self.problem is None:
            for bound in self.binds:
                problem = self._find_problem(bound)
                if problem is not None:
                    self.problem = f"pod {bound.pod} of the same gang: {problem}"
                    break
            self._has_begun = self.problem is None
        return self._has_begun
