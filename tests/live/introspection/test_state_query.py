"""What a user of one namespace may read."""

from __future__ import annotations

import pytest

from tutti.live.introspection.state_query import StateQuery

REST = "(the rest names objects of other namespaces)"
TENANT = StateQuery(namespace="team-a", hides_others=True)


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("0/6 nodes are available: 6 Insufficient cpu.", "0/6 nodes are available: 6 Insufficient cpu."),
        ("until team-a/db-0 has left", "until team-a/db-0 has left"),
        ("until gang/team-a/db has left", "until gang/team-a/db has left"),
        ("had taint {node.kubernetes.io/unreachable: }", "had taint {node.kubernetes.io/unreachable: }"),
        ("1 Insufficient nvidia.com/gpu.", "1 Insufficient nvidia.com/gpu."),
        ("until team-b/db-0 has left", f"until {REST}"),
        ("until team-b/My_Gang has left", f"until {REST}"),
        ("until team-b/My Gang has left", f"until {REST}"),
        ("gang/team-b/job is first", REST),
        ("gang/db is first", REST),
        ("team-a/x, team-b/y.z (team-c/z)", f"team-a/x, {REST}"),
        ('the claim "team-b/data" is gone', f"the claim {REST}"),
        ("DELETE /api/v1/namespaces/team-b/pods/x: no", f"DELETE {REST}"),
    ],
)
def test_messages_do_not_name_objects_of_other_namespaces(text: str, shown: str) -> None:
    assert TENANT.shown_text(text) == shown
    assert TENANT._replace(hides_others=False).shown_text(text) == text


def test_keys_of_other_namespaces_are_hidden() -> None:
    assert TENANT.shown_key("team-a/x") == "team-a/x"
    assert TENANT.shown_key("team-ab/x") == "another namespace"
    assert StateQuery(namespace="team-a").shown_key("team-b/x") == "team-b/x"
