"""Which cluster a command reads if it has no `-f`."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.cluster_api_server import kubeconfig
from tutti.client.access.current_access import current_access
from tutti.exceptions import InputError

IN_POD = {"KUBERNETES_SERVICE_HOST": "10.0.0.1", "KUBERNETES_SERVICE_PORT": "443"}


@pytest.fixture
def pod_folder(tmp_path: Path) -> Path:
    folder = tmp_path / "serviceaccount"
    folder.mkdir()
    (folder / "token").write_text("t")
    (folder / "namespace").write_text("jobs")
    return folder


@pytest.fixture(autouse=True)
def _home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))


def test_the_named_file_comes_first(tmp_path: Path, pod_folder: Path) -> None:
    named, other = tmp_path / "named", tmp_path / "other"
    for folder in (named, other):
        folder.mkdir()
        kubeconfig(folder, f"http://{folder.name}")
    environment = {"KUBECONFIG": str(other / "kubeconfig"), **IN_POD}
    access = current_access(environment, kubeconfig=str(named / "kubeconfig"), folder=pod_folder)
    assert access.server == "http://named"
    assert current_access(environment, folder=pod_folder).server == "http://other"


def test_the_file_of_the_home_folder(tmp_path: Path) -> None:
    (tmp_path / ".kube").mkdir()
    kubeconfig(tmp_path / ".kube", "http://home").rename(tmp_path / ".kube" / "config")
    assert current_access({}).server == "http://home"


def test_a_pod_reads_its_own_cluster(pod_folder: Path) -> None:
    access = current_access(IN_POD, folder=pod_folder)
    assert (access.server, access.namespace) == ("https://10.0.0.1:443", "jobs")


def test_without_a_cluster_the_message_has_both_ways(pod_folder: Path) -> None:
    both = "there is no cluster to read: pass -f FILE with a dump, or --kubeconfig FILE; "
    with pytest.raises(InputError, match=f"^{both}~/.kube/config does not exist$"):
        current_access({}, folder=pod_folder)
    with pytest.raises(InputError, match=r"KUBECONFIG \(/nowhere\) names no file$"):
        current_access({"KUBECONFIG": "/nowhere"}, folder=pod_folder)
    with pytest.raises(InputError, match=both):
        current_access(IN_POD, context="dev", folder=pod_folder)


def test_a_named_file_must_exist(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="missing: no such file or directory"):
        current_access({}, kubeconfig=str(tmp_path / "missing"))
