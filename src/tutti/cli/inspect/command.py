"""`tutti inspect`: print what a running scheduler has in mind.

Contract: one request to the scheduler, through a port-forward of its own or to --url; nothing is changed. Without an
answer there is one line on standard error, and the exit code is 2. Without -n and -A it shows all namespaces that the
user may see: all of them, or the context's namespace with a note.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import click

from tutti.cli import options
from tutti.cli.options import ClusterInput
from tutti.cli.printing import print_data, print_text
from tutti.exceptions import ApiError, TuttiError

if TYPE_CHECKING:
    from tutti.cli.inspect.leader_pod import LeaderPod
    from tutti.client.access.cluster_access import ClusterAccess
    from tutti.client.api_client import ApiClient
    from tutti.wire.scheduler_state import SchedulerState

_TABLES = ("gangs", "queue", "holds", "plans", "watches")


@click.command("inspect")
@click.argument("what", metavar="[gangs|queue|holds|plans|watches|pod/NAME|gang/NAME]", default="")
@options.namespace("Only this namespace; for a pod or a gang its namespace.")
@click.option("-A", "--all-namespaces", is_flag=True, help="All namespaces, which needs the right to get /debug/state.")
@options.output("table", "wide", "json", "yaml")
@click.option("--limit", type=click.IntRange(1, 5000), default=500, show_default=True, help="Entries of each list.")
@click.option("--url", metavar="URL", help="The scheduler's address; without it a port-forward to the leader's pod.")
@click.option(
    "--certificate-authority",
    metavar="FILE",
    help="Trust only the certificates in this file (PEM) with --url https://...; without it those of the system.",
)
@click.option("--token-file", metavar="FILE", help="The bearer token; without it that of the kubeconfig.")
@options.context
@options.lease("The Lease whose holder is asked; the scheduler has the same option.")
@click.option(
    "--port", type=click.IntRange(1, 65535), help="The port in the pod; else that of its arguments, or 10271."
)
def command(
    what: str,
    namespace: str | None,
    all_namespaces: bool,
    form: str,
    limit: int,
    url: str | None,
    certificate_authority: str | None,
    token_file: str | None,
    given: ClusterInput,
    lease: str,
    port: int | None,
) -> None:
    """Print what a running scheduler has in mind: its queue, holds, gangs and last plans.

    Finds the scheduler that leads by its Lease and opens a port-forward to its pod. You need a bearer token: with the
    right to get /debug/state you see everything, with the right to list pods in a namespace you see that namespace.

    \b
    tutti inspect
    tutti inspect queue -n team-a
    tutti inspect gang/train -n team-a
    tutti inspect pod/train-0 -n team-a -o yaml
    tutti inspect gangs --url https://tutti-scheduler.kube-system:10271 --token-file token
    """
    import asyncio

    kind, _, name = what.partition("/")
    if kind not in ("", *_TABLES, "pod", "gang") or (kind in ("pod", "gang")) != bool(name):
        raise click.UsageError(f"inspect {', '.join(_TABLES)}, pod/NAME or gang/NAME.")
    if namespace and all_namespaces:
        raise click.UsageError("-n and -A exclude each other.")
    if all_namespaces and name:
        raise click.UsageError(f"{kind}/NAME needs one namespace: use -n.")
    query = {"limit": str(limit), **({kind: name} if name else {})}
    if namespace:
        query["namespace"] = namespace
    request = _Request(url, certificate_authority, token_file, given, lease, port)
    state = asyncio.run(request.send(query, needs_namespace=bool(name), insists=bool(namespace) or all_namespaces))
    if form in ("json", "yaml"):
        print_data(state, form)
    else:
        print_text(_text(state, kind, name, wide=form == "wide"))


def _text(state: SchedulerState, kind: str, name: str, *, wide: bool) -> str:
    from tutti.present.inspection.overview import overview_text
    from tutti.present.inspection.state_tables import table_text
    from tutti.present.inspection.target_text import gang_text, pod_text

    if kind == "pod":
        return pod_text(state, name)
    if kind == "gang":
        return gang_text(state, name)
    if kind:
        return table_text(state, kind, wide=wide)
    return overview_text(state, wide=wide)


class _Request:
    """The options that say whom to ask, and how."""

    def __init__(
        self,
        url: str | None,
        authority: str | None,
        token_file: str | None,
        given: ClusterInput,
        lease: str,
        port: int | None,
    ) -> None:
        self._url, self._authority, self._token_file = url, authority, token_file
        self._given, self._lease, self._port = given, lease, port

    async def send(self, query: dict[str, str], *, needs_namespace: bool, insists: bool) -> SchedulerState:
        """Ask the scheduler; if all namespaces are forbidden and were not asked for, ask for the context's."""
        from tutti.cli.inspect.state_request import ForbiddenError
        from tutti.client.access.current_access import current_access

        given = self._given
        access = None
        if not (self._url and self._token_file):
            access = current_access(os.environ, kubeconfig=given.kubeconfig, context=given.context, takes_files=False)
        default = access.namespace if access is not None else "default"
        if needs_namespace and "namespace" not in query:
            query["namespace"] = default
        client = _client(access) if access is not None else None
        try:
            token = await self._token(client)
            pod = await self._pod(client)
            try:
                return await self._ask(client, pod, token, query)
            except ForbiddenError:
                if insists or "namespace" in query:
                    raise
            try:
                state = await self._ask(client, pod, token, {**query, "namespace": default})
            except ForbiddenError as error:
                raise ForbiddenError(f"{error}: name one of your namespaces with -n") from None
            click.echo(f"note: you may not see all namespaces: this is namespace {default}", err=True)
            return state
        finally:
            if client is not None:
                await client.close()

    async def _token(self, client: ApiClient | None) -> str:
        from tutti.cli.inspect.state_request import checked_token, read_token

        if self._token_file:
            return read_token(self._token_file)
        token = await client.bearer_token() if client is not None else ""
        if not token:
            problem = "the kubeconfig has no bearer token, only a certificate or a password"
            raise TuttiError(f"{problem}: give --token-file (kubectl create token NAME > FILE)")
        return checked_token(token, "the kubeconfig")

    async def _pod(self, client: ApiClient | None) -> LeaderPod | None:
        from tutti.cli.inspect.leader_pod import find_leader_pod

        if self._url or client is None:
            return None
        try:
            pod = await find_leader_pod(client, self._lease)
        except ApiError as error:
            raise TuttiError(
                f"cannot find the scheduler that leads: {error}; with --url it need not be found"
            ) from None
        return pod if self._port is None else pod._replace(port=self._port)

    async def _ask(
        self, client: ApiClient | None, pod: LeaderPod | None, token: str, query: dict[str, str]
    ) -> SchedulerState:
        from tutti.cli.inspect.state_request import request_by_port_forward, request_by_url

        if pod is None or client is None:
            return await request_by_url(self._url or "", token, query, authority=self._authority)
        return await request_by_port_forward(client, pod, token, query)


def _client(access: ClusterAccess) -> ApiClient:
    import random
    import time

    from tutti import __version__
    from tutti.client.api_client import ApiClient

    return ApiClient(
        access,
        user_agent=f"tutti-inspect/{__version__}",
        monotonic=time.monotonic,
        wall=lambda: time.time_ns() // 1_000,
        draw=random.Random(),
        connections=4,
    )
