"""Every error that a user can fix; `TuttiError` is the base class of all of them.

The text of a `TuttiError` is one line that says what is wrong, where, and what to do next. The command line prints the
line to standard error and exits with the error's `exit_code`.
"""

from __future__ import annotations


class TuttiError(Exception):
    """An error that the user can fix."""

    exit_code = 2


class InputError(TuttiError):
    """A file, an object or a field is malformed or invalid.

    The message names the file, the object and the field as far as they are known.
    """

    def __init__(self, problem: str, *, file: str = "", obj: str = "", field: str = "") -> None:
        self.problem, self.file, self.obj, self.field = problem, file, obj, field
        super().__init__(": ".join(part for part in (file, obj, field, problem) if part))


class PoolError(InputError):
    """A node pool that is well-formed but impossible: the pool has no offering, or its fields contradict each other."""


class QuantityError(InputError):
    """Text that is not a Kubernetes quantity."""


class NotFoundError(TuttiError):
    """The cluster has no object of this name."""


class ConflictError(TuttiError):
    """An edit that contradicts the cluster: for example a second binding of a pod, or a node that does not exist."""


class ClusterReadError(TuttiError):
    """The cluster cannot be read: there is no server, no answer, or no permission.

    The message names the context and its server, and the missing permission.
    """


class ApiError(TuttiError):
    """The Kubernetes API server refused a request, or did not answer."""

    exit_code = 1

    def __init__(
        self,
        message: str,
        *,
        status: int = 0,
        reason: str = "",
        retry_after: float | None = None,
        causes: tuple[str, ...] = (),
    ) -> None:
        super().__init__(message)
        self.status = status
        """The HTTP status; 0 if there was no answer, so that a write may have been carried out."""
        self.reason = reason
        """The machine-readable reason, such as AlreadyExists."""
        self.retry_after = retry_after
        """The seconds to wait before the next attempt, if the server says so."""
        self.causes = causes
        """The machine-readable causes, such as DisruptionBudget."""
