"""Who a bearer token belongs to, and what that user may do: TokenReview and SubjectAccessReview.

Contract: nothing is remembered here. `ApiError` passes through: this process may lack the right to create reviews, or
the server does not answer. Messages never contain the token.
"""

from __future__ import annotations

from typing import Any

import msgspec

from tutti.client.api_client import ApiClient

_TOKEN_REVIEWS = "/apis/authentication.k8s.io/v1/tokenreviews"
_ACCESS_REVIEWS = "/apis/authorization.k8s.io/v1/subjectaccessreviews"
_TIMEOUT = 5.0


class ReviewedUser(msgspec.Struct, frozen=True):
    """A user as the API server knows them."""

    username: str = ""
    uid: str = ""
    groups: tuple[str, ...] = ()
    extra: dict[str, tuple[str, ...]] = {}


class _TokenStatus(msgspec.Struct, frozen=True):
    authenticated: bool = False
    user: ReviewedUser = ReviewedUser()


class _TokenReview(msgspec.Struct, frozen=True):
    status: _TokenStatus = _TokenStatus()


class _AccessStatus(msgspec.Struct, frozen=True):
    allowed: bool = False
    denied: bool = False


class _AccessReview(msgspec.Struct, frozen=True):
    status: _AccessStatus = _AccessStatus()


async def review_token(client: ApiClient, token: str) -> ReviewedUser | None:
    """Return the user of a token; None if the API server does not accept the token."""
    body = {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenReview", "spec": {"token": token}}
    data = await client.request("POST", _TOKEN_REVIEWS, msgspec.json.encode(body), timeout=_TIMEOUT)
    status = msgspec.json.decode(data, type=_TokenReview).status
    return status.user if status.authenticated else None


async def may_get_path(client: ApiClient, user: ReviewedUser, path: str) -> bool:
    """Return whether a user may GET a path that is no resource."""
    return await _review(client, user, {"nonResourceAttributes": {"path": path, "verb": "get"}})


async def may_list_pods(client: ApiClient, user: ReviewedUser, namespace: str) -> bool:
    """Return whether a user may list the pods of a namespace."""
    wanted = {"namespace": namespace, "verb": "list", "version": "v1", "resource": "pods"}
    return await _review(client, user, {"resourceAttributes": wanted})


async def _review(client: ApiClient, user: ReviewedUser, attributes: dict[str, Any]) -> bool:
    spec = {"user": user.username, "uid": user.uid, "groups": user.groups, "extra": user.extra, **attributes}
    body = {"apiVersion": "authorization.k8s.io/v1", "kind": "SubjectAccessReview", "spec": spec}
    data = await client.request("POST", _ACCESS_REVIEWS, msgspec.json.encode(body), timeout=_TIMEOUT)
    status = msgspec.json.decode(data, type=_AccessReview).status
    return status.allowed and not status.denied
