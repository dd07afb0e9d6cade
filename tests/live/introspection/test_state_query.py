"""What a user of one namespace may read."""

from __future__ import annotations

import pytest

from tutti.live.introspection.state_query import StateQuery

TENANT = StateQuery(namespace="team-a", hides_others=True)


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("0/6 nodes are available: 6 Insufficient cpu.", "0/6 nodes are available: 6 Insufficient cpu."),
        ("until team-b/db-0 has left", "until a pod of another namespace has left"),
        ("until team-a/db-0 has left", "until team-a/db-0 has left"),
        ("had taint {node.kubernetes.io/unreachable: }", "had taint {node.kubernetes.io/unreachable: }"),
        ("team-b/x, team-b/y.z", "pods of other namespaces"),
    ],
)
def test_messages_do_not_name_pods_of_other_namespaces(text: str, shown: str) -> None:
    assert TENANT.shown_text(text, {"team-a", "team-b"}) == shown
    assert TENANT._replace(hides_others=False).shown_text(text, {"team-a", "team-b"}) == text


def test_keys_of_other_namespaces_are_hidden() -> None:
    assert TENANT.shown_key("team-a/x") == "team-a/x"
    assert TENANT.shown_key("team-ab/x") == "another namespace"
    assert StateQuery(namespace="team-a").shown_key("team-b/x") == "team-b/x"
