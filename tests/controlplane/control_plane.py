"""A real control plane on loopback: etcd, kube-apiserver and, if asked for, the other parts.

Contract: standard library only; all ports are free ones of 127.0.0.1; all files are in one folder, which is temporary
unless the caller names one. `start` returns when the API server is ready, about 5 s later, or raises
`ControlPlaneError` with the end of a log. `stop` ends every process by its id; none outlives the process that started
it (`child_processes`). Call `start` in the main thread. If a part ends by itself, the folder is kept for its logs.

As a command, `python -m tests.controlplane.control_plane [--controller-manager] [--kwok] ...` prints one line of JSON
(kubeconfig, server, token, dir, pids, etcd, audit_log) when it is ready, and runs until SIGINT, SIGTERM or the end of a
part; the exit code is 1 if a part has ended.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import signal
import socket
import ssl
import sys
import tempfile
import time
import urllib.error
import urllib.request
from contextlib import ExitStack
from pathlib import Path
from typing import Any

from tests.controlplane.child_processes import ChildProcesses
from tests.controlplane.component_flags import (
    HOST,
    ControlPlaneOptions,
    api_server_flags,
    controller_manager_flags,
    etcd_flags,
    kwok_flags,
    scheduler_flags,
)
from tests.controlplane.server_files import (
    write_admin_token,
    write_kubeconfig,
    write_scheduler_config,
    write_signing_key,
)

VERSION = "1.37.1"
_PATIENCE = 120
"""Seconds until the API server must be ready; only something that hangs takes so long."""
_ATTEMPTS = 3
"""Starts with other ports, if another process takes a free port first."""


class ControlPlaneError(Exception):
    """A control plane that cannot start, or a part of it that has ended."""


class ControlPlane:
    """See the module's docstring; `with ControlPlane(options) as plane` starts and stops it."""

    def __init__(self, options: ControlPlaneOptions | None = None, *, folder: Path | None = None) -> None:
        self.options = options or ControlPlaneOptions()
        self._is_temporary = folder is None
        self.folder = (folder or Path(tempfile.mkdtemp(prefix="tutti-control-plane-"))).absolute()
        self.folder.mkdir(parents=True, exist_ok=True)
        self.children = ChildProcesses(self.folder)
        self.server = self.etcd = self.token = ""
        self.kubeconfig = self.folder / "kubeconfig"
        """The administrator's, in `system:masters`."""
        self.audit_log = self.folder / "audit.log"
        """One JSON object in each line, if `options.audit`."""
        self._key = self.folder / "signing.key"

    def __enter__(self) -> ControlPlane:
        self.start()
        return self

    def __exit__(self, *_error: object) -> None:
        self.stop()

    @property
    def pids(self) -> dict[str, int]:
        """The process ids of the parts, by the names of their programs."""
        return self.children.pids

    def start(self) -> None:
        """Start all parts; return when the API server is ready."""
        try:
            for attempt in range(1, _ATTEMPTS + 1):
                try:
                    self._start_api_server()
                    break
                except ControlPlaneError as error:
                    if "address already in use" not in str(error) or attempt == _ATTEMPTS:
                        raise
                    self.children.stop()
                    shutil.rmtree(self.folder / "etcd", ignore_errors=True)
            self._start_others()
        except BaseException:
            self.stop()
            raise

    def stop(self) -> None:
        """Stop all parts, and remove the folder if it is temporary."""
        self.children.stop()
        if self._is_temporary:
            shutil.rmtree(self.folder, ignore_errors=True)

    def restart_api_server(self, *, kill: bool = False) -> None:
        """Stop kube-apiserver and start it again at the same address; return when it is ready."""
        self.children.stop_one("kube-apiserver", kill=kill)
        self.children.start_again("kube-apiserver")
        self._wait_for("/readyz")

    def check(self) -> None:
        """Raise `ControlPlaneError` if a part has ended; then the folder is kept."""
        for name in self.children.dead():
            raise self._error(f"{name} has ended", name)

    def _start_api_server(self) -> None:
        client_port, peer_port, port = free_ports(3)
        self.etcd, self.server = f"http://{HOST}:{client_port}", f"https://{HOST}:{port}"
        data, certificates, tokens = (self.folder / name for name in ("etcd", "certificates", "tokens.csv"))
        self._launch("etcd", etcd_flags(self.options, data=data, client_port=client_port, peer_port=peer_port))
        self.token = write_admin_token(tokens)
        flags = api_server_flags(
            self.options,
            etcd=self.etcd,
            port=port,
            certificates=certificates,
            key=write_signing_key(self._key),
            tokens=tokens,
            audit_log=self.audit_log,
        )
        self._launch("kube-apiserver", flags)
        self._wait_for("/readyz", "/api/v1/namespaces/default", "/api/v1/namespaces/kube-system")
        authority = certificates / "apiserver.crt"
        write_kubeconfig(self.kubeconfig, server=self.server, authority=authority, token=self.token)

    def _start_others(self) -> None:
        options, kubeconfig = self.options, self.kubeconfig
        manager, scheduler, kwok = free_ports(3)
        if options.controller_manager:
            flags = controller_manager_flags(options, kubeconfig=kubeconfig, key=self._key, port=manager)
            self._launch("kube-controller-manager", flags)
            self._wait_for("/api/v1/namespaces/default/serviceaccounts/default")
        else:  # without this service account no pod can be created
            account = {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": "default"}}
            self._request("/api/v1/namespaces/default/serviceaccounts", account)
        if options.scheduler:
            config = options.scheduler_config
            config = config or write_scheduler_config(self.folder / "scheduler.json", kubeconfig)
            self._launch("kube-scheduler", scheduler_flags(options, config=config, port=scheduler))
        if options.kwok:
            stages = options.kwok_stages or binaries_folder() / "stages.yaml"
            self._launch("kwok", kwok_flags(kubeconfig=kubeconfig, stages=stages, port=kwok))

    def _launch(self, name: str, flags: list[str]) -> None:
        program = binaries_folder() / name
        if not program.is_file():
            raise ControlPlaneError(f"{program} does not exist: run `make control-plane` first")
        self.children.start(name, program, *flags)

    def _wait_for(self, *paths: str) -> None:
        """Return when the API server answers each path with 200."""
        end = time.monotonic() + _PATIENCE
        for path in paths:
            while self._request(path) != 200:
                self.check()
                if time.monotonic() > end:
                    raise self._error(f"no answer to {path} in {_PATIENCE} s", "kube-apiserver")
                time.sleep(0.05)

    def _error(self, problem: str, part: str) -> ControlPlaneError:
        self._is_temporary = False
        tail = self.children.log_tail(part)
        return ControlPlaneError(f"{problem}; the end of {self.children.log(part)}:\n{tail}")

    def _request(self, path: str, body: Any = None) -> int:
        """Send a GET, or a POST with a body; return the status, 0 if there is no answer."""
        headers = {"Authorization": f"Bearer {self.token}", "Content-Type": "application/json"}
        data = json.dumps(body).encode() if body is not None else None
        request = urllib.request.Request(self.server + path, data=data, headers=headers)
        context = ssl.create_default_context()
        context.check_hostname, context.verify_mode = False, ssl.CERT_NONE  # the server is making its certificate
        handlers = urllib.request.ProxyHandler({}), urllib.request.HTTPSHandler(context=context)
        try:
            with urllib.request.build_opener(*handlers).open(request, timeout=10) as answer:
                return int(answer.status)
        except urllib.error.HTTPError as error:
            with error:
                return error.code
        except OSError:
            return 0


def binaries_folder() -> Path:
    """Return the folder into which `make control-plane` builds the programs."""
    chosen = os.environ.get("TUTTI_CONTROL_PLANE")
    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    return Path(chosen) if chosen else cache / "tutti" / f"control-plane-{VERSION}"


def free_ports(count: int) -> list[int]:
    """Return different ports that no process listens on."""
    with ExitStack() as stack:
        sockets = [stack.enter_context(socket.socket()) for _ in range(count)]
        for each in sockets:
            each.bind((HOST, 0))
        return [each.getsockname()[1] for each in sockets]


def main() -> None:
    """Run a control plane until a signal comes or a part ends."""
    parser = argparse.ArgumentParser(prog="control_plane", description="Start a real control plane on loopback.")
    for part in ("controller-manager", "scheduler", "kwok", "native-gangs", "audit"):
        parser.add_argument(f"--{part}", action="store_true")
    for file in ("scheduler-config", "kwok-stages", "dir"):
        parser.add_argument(f"--{file}", type=Path)
    for program in ("etcd", "api-server", "controller-manager"):
        name = f"{program.replace('-', '_')}_flags"
        parser.add_argument(f"--{program}-flag", dest=name, action="append", default=[], help=f"--{program}-flag=--v=4")
    given: dict[str, Any] = vars(parser.parse_args())
    folder = given.pop("dir")
    chosen: dict[str, Any] = {key: tuple(v) if isinstance(v, list) else v for key, v in given.items()}
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, lambda *_: sys.exit(0))
    plane = ControlPlane(ControlPlaneOptions(**chosen), folder=folder)
    try:
        plane.start()
        answer = {"kubeconfig": str(plane.kubeconfig), "server": plane.server, "token": plane.token}
        answer |= {"dir": str(plane.folder), "etcd": plane.etcd, "audit_log": str(plane.audit_log)}
        sys.stdout.write(json.dumps({**answer, "pids": plane.pids}) + "\n")
        sys.stdout.flush()
        while True:
            plane.check()
            time.sleep(0.2)
    except ControlPlaneError as error:
        sys.exit(f"control_plane: {error}")
    finally:
        signal.signal(signal.SIGTERM, signal.SIG_IGN)  # once is enough
        plane.stop()


if __name__ == "__main__":
    main()
