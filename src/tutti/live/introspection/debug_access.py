"""Who may see the state: everything with the right to get /debug/state, a namespace with the right to list its pods.

Contract: a bearer token is checked by a TokenReview, and rights by SubjectAccessReviews; answers count for some
seconds, and for a bounded number of tokens. Reviews are limited to a rate, so that nobody makes this process load the
API server. Tokens are remembered as digests only. A refusal is a `Refused` with an HTTP status and a sentence that says
what to do. Belongs to the event loop.
"""

from __future__ import annotations

import hashlib
from collections import OrderedDict
from collections.abc import Awaitable, Callable
from typing import Generic, TypeVar

from tutti.client.access_reviews import ReviewedUser, may_get_path, may_list_pods, review_token
from tutti.client.api_client import ApiClient
from tutti.exceptions import ApiError

STATE_PATH = "/debug/state"
_VALID_FOR = 10.0
_MOST_ANSWERS = 1_000
_REVIEWS_PER_SECOND, _BURST = 10.0, 30.0

_Answer = TypeVar("_Answer")


class Refused(Exception):  # noqa: N818, as it is an answer
    """A request that is not answered; the text is for the user."""

    def __init__(self, status: int, message: str) -> None:
        super().__init__(message)
        self.status = status


class DebugAccess:
    """See the module's docstring; `monotonic` returns seconds."""

    def __init__(self, client: ApiClient, monotonic: Callable[[], float]) -> None:
        self._client, self._monotonic = client, monotonic
        limit = _RateLimit(monotonic)
        self._users = _Remembered[ReviewedUser | None](monotonic, limit)
        self._rights = _Remembered[bool](monotonic, limit)

    async def sees_everything(self, token: str, namespace: str) -> bool:
        """Return whether the owner of a token may see all namespaces; raise `Refused` if not even the given one."""
        if not token:
            raise Refused(401, "send a bearer token: Authorization: Bearer TOKEN")
        digest = hashlib.sha256(token.encode()).hexdigest()
        user = await self._users.get((digest,), lambda: review_token(self._client, token))
        if user is None:
            raise Refused(401, "the API server does not accept this token")
        if await self._rights.get((digest, STATE_PATH), lambda: may_get_path(self._client, user, STATE_PATH)):
            return True
        if not namespace:
            problem = f"user {user.username} may not get {STATE_PATH}: name a namespace whose pods the user may list"
            raise Refused(403, f"{problem} (?namespace=NAME, tutti inspect -n NAME)")
        if not await self._rights.get(
            (digest, "pods", namespace), lambda: may_list_pods(self._client, user, namespace)
        ):
            raise Refused(403, f"user {user.username} may neither get {STATE_PATH} nor list pods in {namespace}")
        return False


class _RateLimit:
    """A bucket of reviews that fills up with time."""

    def __init__(self, monotonic: Callable[[], float]) -> None:
        self._monotonic = monotonic
        self._left, self._at = _BURST, monotonic()

    def take(self) -> None:
        now = self._monotonic()
        self._left = min(self._left + (now - self._at) * _REVIEWS_PER_SECOND, _BURST)
        self._at = now
        if self._left < 1:
            raise Refused(429, "too many requests with new tokens or namespaces: try again in some seconds")
        self._left -= 1


class _Remembered(Generic[_Answer]):
    """Answers of reviews that are still valid, the newest last."""

    def __init__(self, monotonic: Callable[[], float], limit: _RateLimit) -> None:
        self._monotonic, self._limit = monotonic, limit
        self._answers: OrderedDict[tuple[str, ...], tuple[float, _Answer]] = OrderedDict()

    async def get(self, key: tuple[str, ...], ask: Callable[[], Awaitable[_Answer]]) -> _Answer:
        known = self._answers.get(key)
        if known is not None and self._monotonic() < known[0]:
            return known[1]
        self._limit.take()
        try:
            answer = await ask()
        except ApiError as error:
            if error.status == 403:
                problem = "this scheduler may not ask who you are: let it create tokenreviews and subjectaccessreviews"
                raise Refused(503, f"{problem} ({error})") from None
            raise Refused(503, f"the API server did not say who you are: {error}") from None
        self._answers[key] = self._monotonic() + _VALID_FOR, answer
        self._answers.move_to_end(key)
        if len(self._answers) > _MOST_ANSWERS:
            self._answers.popitem(last=False)
        return answer
