"""Which 403 says that a right is missing, in the words of kube-apiserver."""

from __future__ import annotations

import pytest

from tutti.client.access.missing_rights import is_missing_right
from tutti.exceptions import ApiError

USER = "system:serviceaccount:kube-system:tutti-scheduler"


@pytest.mark.parametrize(
    "message",
    [
        f'pods "a" is forbidden: User "{USER}" cannot create resource "pods/binding" in API group "" in the namespace '
        '"default"',
        f'pods "a" is forbidden: User "{USER}" cannot delete resource "pods" in API group "" in the namespace '
        '"default": RBAC: clusterrole.rbac.authorization.k8s.io "tutti-scheduler" not found',
        f'forbidden: User "{USER}" cannot get path "/apis"',
    ],
)
def test_the_authorizer(message: str) -> None:
    assert is_missing_right(ApiError(f"POST /api: {message}", status=403, reason="Forbidden"))


@pytest.mark.parametrize(
    ("message", "status", "causes"),
    [
        ("pods \"a\" is forbidden: ValidatingAdmissionPolicy 'p' denied request: cannot create resource", 403, ()),
        ('admission webhook "w" denied the request: no', 403, ()),
        (
            'pods "a" is forbidden: unable to create new content in namespace x because it is being terminated',
            403,
            ("NamespaceTerminating",),
        ),
        (f'pods "a" is forbidden: User "{USER}" cannot create resource "pods/binding"', 404, ()),
    ],
)
def test_others(message: str, status: int, causes: tuple[str, ...]) -> None:
    assert not is_missing_right(ApiError(message, status=status, causes=causes))
