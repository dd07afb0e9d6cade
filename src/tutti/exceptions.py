"""Every error that Tutti raises on purpose; all of them are a `TuttiError`.

A `TuttiError` is the user's to mend: its text is one line that says what is wrong, where, and what to do next. The
command line prints it to standard error and exits with its `exit_code`.
"""

from __future__ import annotations


class TuttiError(Exception):
    """Something the user can mend."""

    exit_code = 2


class InputError(TuttiError):
    """A file, an object or a field cannot be read.

    The line names the file, the object and the field as far as they are known.
    """

    def __init__(self, problem: str, *, file: str = "", obj: str = "", field: str = "") -> None:
        self.problem, self.file, self.obj, self.field = problem, file, obj, field
        super().__init__(": ".join(part for part in (file, obj, field, problem) if part))


class PoolError(InputError):
    """A node pool that can be read and cannot be: nothing is offered in it, or what it says contradicts itself."""


class QuantityError(InputError):
    """Text that is not a Kubernetes quantity."""


class NotFoundError(TuttiError):
    """A name that is not in the cluster."""


class ConflictError(TuttiError):
    """An edit that contradicts the cluster: a pod bound twice, a node that is not there."""
