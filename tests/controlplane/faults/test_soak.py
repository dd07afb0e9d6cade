"""A short soak run: 100 faults and 10 kills, no invariant broken.

One process without a lease: with a lease of 15 seconds and a kill every 4 seconds, nobody would lead most of the time.
`make soak` changes leaders, and `test_restarts` of the scheduler's tests has a standby that takes over.
"""

from __future__ import annotations

import sys
from pathlib import Path

from tests.controlplane.faults.soak import soak
from tests.controlplane.faults.soak_options import parse_options
from tests.controlplane.faults.soak_report import report_lines

TUTTI = Path(sys.executable).with_name("tutti")


def test_no_invariant_breaks_under_faults_and_kills(tmp_path: Path) -> None:
    command = f"{TUTTI} scheduler --kubeconfig {{kubeconfig}} --port 0 --no-leader-elect"
    who = ["--scheduler-command", command, "--replicas", "1", "--dialect", "coscheduling"]
    amounts = ["--faults", "100", "--kills", "10", "--kill-every", "4", "--partial-limit", "10"]
    history, findings = soak(parse_options([*who, *amounts, "--dir", str(tmp_path / "soak")]))
    assert not findings.broken, "\n".join(report_lines(history, findings))
