"""Which refusals mean that the sender lacks a right, so that neither the request nor its object is at fault.

A 403 has three kinds of authors: the authorizer, who knows no rights for moments after an API server has started,
because RBAC reads its roles later than requests come in; admission, such as a policy or a webhook; and the registry,
for a namespace that is being terminated. Only the first may change by itself within seconds.

Contract: pure.
"""

from __future__ import annotations

import re

from tutti.exceptions import ApiError

_NO_RIGHT = re.compile(r'forbidden: User "[^"]*" cannot \S+ (resource|path) "')
"""What the API server writes if no authorizer allows a request."""


def is_missing_right(error: ApiError) -> bool:
    """Return whether a request was refused because its sender has no right to it."""
    return error.status == 403 and not error.causes and _NO_RIGHT.search(str(error)) is not None
