"""Drafts made real: the nodes join the picture, and the engine puts the pods where the draft says.

Contract: the engine has the last word. A pod goes to its node only if the engine's filters let it in there at that
moment; where the order matters (a spread), pods take turns until nobody moves any more. What a draft promised and the
engine refuses is tried on every node; what then still waits is left. The picture is changed: use a `Trial`.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple

from tutti.cluster.edits import Bind
from tutti.engine.plugins.base import Area
from tutti.recommend.draft import Bought, Draft
from tutti.recommend.picture import Picture
from tutti.recommend.problem import Problem


class Placed(NamedTuple):
    """How a draft came out."""

    nodes: tuple[tuple[str, int], ...]
    """The new nodes: names and the numbers of their offerings."""
    where: dict[str, str]
    """The node of every pod that has one now."""
    left: tuple[str, ...]


def realise(picture: Picture, problem: Problem, draft: Draft) -> Placed:
    """Buy what a draft buys, and place its pods."""
    names = picture.join_all([problem.offerings[each.offering] for each in draft.bought])
    wanted: dict[str, list[str]] = {}
    for pod, node in draft.on_existing:
        wanted.setdefault(node, []).append(pod)
    for name, each in zip(names, draft.bought, strict=True):
        wanted.setdefault(name, []).extend(each.pods)
    plain = _plain(picture, problem, draft.bought)
    _follow(picture, wanted, plain, dict(zip(names, draft.bought, strict=True)))
    names_of, row_of = picture.cluster.pods.node_names, picture.cluster.pods.row_of
    known = problem.of_pod
    rest = [pod for pod in picture.pending if pod in known and names_of[row_of[pod]] is None]
    if rest:
        rest = anywhere(picture, rest)
    where = {
        pod: node
        for pod in known
        if (node := names_of[row_of[pod]]) is not None
    }
    return Placed(tuple(zip(names, (each.offering for each in draft.bought), strict=True)), where, tuple(rest))


def _plain(picture: Picture, problem: Problem, bought: Sequence[Bought]) -> bool:
    """Whether nodes with the same pods are the same to the engine: nobody looks at others, nobody brings volumes."""
    if problem.rules.looks.any() or picture.cluster.held_on:
        return False
    cluster = picture.cluster
    return not any(cluster.spec_of(cluster.pod_row(each.pods[0])).volumes for each in problem.classes)


def _follow(
    picture: Picture, wanted: dict[str, list[str]], plain: bool, bought: dict[str, Bought]
) -> None:
    """Put pods on their nodes, in rounds until nobody moves."""
    cluster, table = picture.cluster, picture.cluster.pods
    known: set[tuple[int, tuple[int, ...]]] = set()
    waiting = dict(wanted)
    while True:
        moved, refused = False, {}
        for node, pods in waiting.items():
            look: tuple[int, tuple[int, ...]] | None = None
            if plain and node in bought:
                look = (bought[node].offering, tuple(sorted(table.spec[[table.row_of[pod] for pod in pods]].tolist())))
            if look is not None and look in known:
                # The engine has let the very same pods into the very same node.
                for pod in pods:
                    cluster.apply(Bind(pod, node))
                continue
            left = _into(picture, node, pods)
            moved |= len(left) < len(pods)
            if left:
                refused[node] = left
            elif look is not None:
                known.add(look)
        if not moved or not refused:
            return
        waiting = refused


def _into(picture: Picture, node: str, pods: Sequence[str]) -> list[str]:
    """Place pods on one node; give those that do not get in."""
    cluster = picture.cluster
    row = cluster.nodes.row_of.get(node)
    if row is None:
        return list(pods)
    area = Area.of_row(row, cluster.nodes.size)
    left: list[str] = []
    todo = list(pods)
    while todo:
        done = picture.engine.place(todo, area, give_up=True)
        if done and done[-1].node is None:
            left.append(todo[len(done) - 1])
        todo = todo[len(done) :]
    return left


def anywhere(picture: Picture, pods: Iterable[str], *, patient: bool = True) -> list[str]:
    """Place pods on any node, in rounds until nobody moves; give those that stay. Without patience the first that stays
    ends it."""
    rest = list(pods)
    while rest:
        left = []
        for pod in rest:
            if _stays(picture, pod):
                left.append(pod)
                if not patient:
                    return left
        if len(left) == len(rest):
            break
        rest = left
    return rest


def _stays(picture: Picture, pod: str) -> bool:
    decision = picture.engine.place([pod], give_up=True)[0]
    return decision.node is None

