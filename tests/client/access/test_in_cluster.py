"""Access by a pod's service account."""

from __future__ import annotations

from pathlib import Path

import pytest

from tutti.client.access.in_cluster import in_cluster_access, is_in_cluster
from tutti.exceptions import InputError

ENVIRONMENT = {"KUBERNETES_SERVICE_HOST": "10.0.0.1", "KUBERNETES_SERVICE_PORT": "6443"}


def test_a_pod(tmp_path: Path) -> None:
    (tmp_path / "token").write_text("abc")
    (tmp_path / "namespace").write_text("ml\n")
    assert is_in_cluster(ENVIRONMENT, tmp_path)
    access = in_cluster_access(ENVIRONMENT, tmp_path)
    assert (access.server, access.namespace) == ("https://10.0.0.1:6443", "ml")
    assert access.authority_file == tmp_path / "ca.crt"
    assert access.user.token_file == tmp_path / "token"


def test_an_ipv6_address(tmp_path: Path) -> None:
    (tmp_path / "token").write_text("abc")
    access = in_cluster_access({**ENVIRONMENT, "KUBERNETES_SERVICE_HOST": "fd00::1"}, tmp_path)
    assert access.server == "https://[fd00::1]:6443"
    assert access.namespace == "default"


def test_elsewhere(tmp_path: Path) -> None:
    assert not is_in_cluster({}, tmp_path)
    assert not is_in_cluster(ENVIRONMENT, tmp_path)
    with pytest.raises(InputError, match="KUBERNETES_SERVICE_HOST is not set"):
        in_cluster_access({}, tmp_path)
    with pytest.raises(InputError, match="automountServiceAccountToken"):
        in_cluster_access(ENVIRONMENT, tmp_path)
