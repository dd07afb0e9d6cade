"""A question about the state: a namespace, a pod or a gang, and how many entries each list may have.

Contract: frozen. Names of other namespaces' objects do not leave the scheduler if `hides_others` is set: a message ends
before the first word that may be such a name, because the names of gangs may have any characters.
"""

from __future__ import annotations

import re
from typing import NamedTuple

DEFAULT_LIMIT, LARGEST_LIMIT = 500, 5_000
_WITH_SLASH = re.compile(r"\S*/\S*")
_COUNT = re.compile(r"[0-9]+/[0-9]+")
_DOMAIN = re.compile(r"[a-z0-9-]+(\.[a-z0-9-]+)+")
"""The first part of a qualified name, such as nvidia.com/gpu; a namespace has no dots."""
_PUNCTUATION = "()[]{}<>,.:;'\"`"
_REST = "(the rest names objects of other namespaces)"


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

    def shown_text(self, text: str) -> str:
        """Return a message up to the first name of another namespace's object."""
        if not self.hides_others:
            return text
        for found in _WITH_SLASH.finditer(text):
            if self._may_be_foreign(found[0].strip(_PUNCTUATION)):
                return f"{text[: found.start()]}{_REST}"
        return text

    def _may_be_foreign(self, word: str) -> bool:
        """Return whether a word with a slash may be a key of another namespace, or have one in it."""
        if _COUNT.fullmatch(word):
            return False
        namespace, _, name = word.partition("/")
        if namespace == "gang" and "/" in name:
            namespace = name.partition("/")[0]
        return namespace != self.namespace and not _DOMAIN.fullmatch(namespace)
