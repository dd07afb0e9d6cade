"""`tutti replay`: where the plans of a recording differ when its sessions run again.

Contract: the answer goes to standard output, notes to standard error. The exit code is 0 if all plans are the same, 1
if some differ, 2 for a file that cannot be read; a last line that is not complete is only a note. The file is read in
pieces, so that a long recording needs no more memory than its cluster.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import nullcontext
from pathlib import Path
from typing import TYPE_CHECKING

import click

from tutti.cli import options
from tutti.cli.printing import print_data, print_text
from tutti.exceptions import InputError

if TYPE_CHECKING:
    from tutti.app.replay import ReplayResult
    from tutti.engine.placement.profile import Profile
    from tutti.engine.session.policy import Policy

_CHUNK = 1 << 16
_STEP = 20
"""Sessions between two updates of the progress."""


@click.command("replay")
@click.argument("path", metavar="FILE", type=click.Path(allow_dash=True))
@click.option(
    "--policy",
    metavar="NAME|FILE",
    help="Run the sessions with another policy: live, offline, or a YAML or JSON file with fields of a policy.",
)
@options.profile
@options.output("table", "json")
@click.option(
    "--show",
    type=click.IntRange(0),
    default=20,
    show_default=True,
    metavar="N",
    help="How many lines of the table to print.",
)
def command(
    path: str, *, policy: str | None, profile_path: str | None, scheduler_name: str | None, form: str, show: int
) -> None:
    """Run a recording of sessions again, and say where the plans differ.

    FILE has JSON lines, gzipped or not (- is standard input): changes of a cluster, and sessions with their plans.
    The changes are applied again and the sessions run again at the recorded times, with the recorded policy or another
    one. Prints one line for each pod that has another outcome. Exits with 1 if any plan differs.

    \b
    tutti replay morning.jsonl.gz
    tutti replay morning.jsonl.gz --policy no-preemption.yaml
    tutti replay morning.jsonl.gz --profile packing.yaml -o json
    """
    from tutti.cli.loading import load_profile, print_note

    chosen = _policy(policy) if policy is not None else None
    has_profile = profile_path is not None or scheduler_name is not None
    result = _replay(path, chosen, load_profile(profile_path, scheduler_name) if has_profile else None)
    for note in result.notes:
        print_note(note)
    if form == "json":
        print_data(result.data(), form)
    else:
        print_text(result.text(show=show))
    if not result.is_same:
        raise click.exceptions.Exit(1)


def _replay(path: str, policy: Policy | None, profile: Profile | None) -> ReplayResult:
    from tutti.app.replay import replay
    from tutti.cli.loading import spinner
    from tutti.wire.recording.reader import RecordingReader

    reader = RecordingReader(_chunks(path), file="stdin" if path == "-" else path)
    with spinner("replaying") as tell:

        def progress(sessions: int) -> None:
            if sessions % _STEP == 0:
                tell(f"{sessions:,} sessions")

        return replay(reader, policy=policy, profile=profile, progress=progress)


def _chunks(path: str) -> Iterator[bytes]:
    """Yield the bytes of a file in pieces."""
    try:
        with nullcontext(sys.stdin.buffer) if path == "-" else Path(path).open("rb") as file:
            while chunk := file.read(_CHUNK):
                yield chunk
    except OSError as error:
        raise InputError((error.strerror or str(error)).lower(), file=path) from None


def _policy(name: str) -> Policy:
    """Return the policy of a name or of a file."""
    from tutti.kube.reading.sources import read_sources
    from tutti.wire.session_policy import POLICIES, policy_of

    if name in POLICIES:
        return POLICIES[name]
    if not Path(name).is_file():
        raise InputError(f"neither a policy ({', '.join(POLICIES)}) nor a file", file=f"--policy {name}")
    return policy_of(next(read_sources([name])))
