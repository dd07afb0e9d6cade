"""A cluster that commands without `-f` read."""

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from tests.support.cluster_api_server import ClusterApiServer, kubeconfig
from tests.support.documents import Document


@pytest.fixture
def serve(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[..., ClusterApiServer]]:
    """Serve objects as the cluster of the current context."""
    with ExitStack() as stack:

        def served(*objects: Document, namespace: str = "") -> ClusterApiServer:
            server = stack.enter_context(ClusterApiServer(objects).running())
            monkeypatch.setenv("KUBECONFIG", str(kubeconfig(tmp_path, server.url, namespace=namespace)))
            return server

        yield served
