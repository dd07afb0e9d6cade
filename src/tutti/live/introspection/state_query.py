"""A question about the state: a namespace, a pod or a gang, and how many entries each list may have.

Contract: frozen. Names of other namespaces' pods do not leave the scheduler if `hides_others` is set.
"""

from __future__ import annotations

import re
from collections.abc import Collection
from typing import NamedTuple

DEFAULT_LIMIT, LARGEST_LIMIT = 500, 5_000
_KEY = re.compile(r"\b([a-z0-9](?:[a-z0-9-]*[a-z0-9])?)/([a-z0-9][a-z0-9.-]*[a-z0-9]|[a-z0-9])")
"""Text that may be the key of a pod or a gang."""
_OTHER = "a pod of another namespace"
_OTHERS = re.compile(rf"{_OTHER}(?:, {_OTHER})+")


class StateQuery(NamedTuple):
    """See the module's docstring."""

    namespace: str = ""
    """Empty for all namespaces."""
    pod: str = ""
    """The name of a pod in the namespace."""
    gang: str = ""
    """The name of a gang in the namespace."""
    limit: int = DEFAULT_LIMIT
    hides_others: bool = False
    """Whether names of other namespaces' objects are left out."""

    def has(self, key: str) -> bool:
        """Return whether the namespace of a key is asked for."""
        return not self.namespace or key.startswith(f"{self.namespace}/")

    def shown_key(self, key: str) -> str:
        """Return a key, or a text for a key that must not be shown."""
        return key if not self.hides_others or self.has(key) else "another namespace"

    def shown_text(self, text: str, namespaces: Collection[str]) -> str:
        """Return a message without the names of other namespaces' objects."""
        if not self.hides_others or "/" not in text:
            return text

        def replacement(found: re.Match[str]) -> str:
            is_other = found[1] in namespaces and found[1] != self.namespace
            return _OTHER if is_other else found[0]

        return _OTHERS.sub("pods of other namespaces", _KEY.sub(replacement, text))
