"""How often each model gives the real program's answer, measured on the recorded instances.

Contract: constants; `tutti conformance --model tests/conformance/purchases/*` prints the same numbers, and a test
measures them again. A model agrees if the real program gave the same answer in some run on the same input; a model is
exact if that run is the recorded one. Karpenter chooses domains at random, and Cluster Autoscaler chooses among equal
options at random and lists nodes in random order, so no deterministic model is exact on every instance.
"""

from __future__ import annotations

from typing import NamedTuple

KARPENTER, CLUSTER_AUTOSCALER = "karpenter", "cluster-autoscaler"
PURCHASE = "purchase"


class Agreement(NamedTuple):
    """How often a model agrees with the real program in one part of the answer."""

    model: str
    """The name of the model; with its expander for example ``cluster-autoscaler/price``."""
    part: str
    cases: int
    exact: int
    agree: int

    def __str__(self) -> str:
        return f"{self.agree} of {self.cases}"

    @property
    def share(self) -> float:
        """The share of cases in which the model agrees, between 0 and 1."""
        return self.agree / self.cases


AGREEMENTS = (
    # Nodes, cost and pods left after the first pass; the pods of each node; nodes, cost and pods left after all passes.
    Agreement(KARPENTER, PURCHASE, cases=104, exact=100, agree=104),
    Agreement(KARPENTER, "claims", cases=96, exact=96, agree=96),
    Agreement(KARPENTER, "settled", cases=2, exact=2, agree=2),
    # The node group and the number of nodes of every loop.
    Agreement(CLUSTER_AUTOSCALER, PURCHASE, cases=65, exact=63, agree=65),
    Agreement(f"{CLUSTER_AUTOSCALER}/least-waste", PURCHASE, cases=24, exact=22, agree=24),
    Agreement(f"{CLUSTER_AUTOSCALER}/most-pods", PURCHASE, cases=26, exact=26, agree=26),
    Agreement(f"{CLUSTER_AUTOSCALER}/price", PURCHASE, cases=15, exact=15, agree=15),
    # Parts of a scale-up: the estimator alone, each option of the first loop, the expander on recorded options.
    Agreement(CLUSTER_AUTOSCALER, "estimate", cases=16, exact=16, agree=16),
    Agreement(CLUSTER_AUTOSCALER, "options", cases=343, exact=331, agree=340),
    Agreement(CLUSTER_AUTOSCALER, "choice", cases=126, exact=126, agree=126),
    # Scale-down: unneeded nodes, the reasons of the other nodes, the utilization of each node, and deleted nodes.
    Agreement(CLUSTER_AUTOSCALER, "removable", cases=19, exact=15, agree=19),
    Agreement(CLUSTER_AUTOSCALER, "reasons", cases=19, exact=15, agree=19),
    Agreement(CLUSTER_AUTOSCALER, "utilization", cases=19, exact=19, agree=19),
    Agreement(CLUSTER_AUTOSCALER, "deleted", cases=19, exact=15, agree=19),
)


def agreement_of(model: str, part: str = PURCHASE) -> Agreement | None:
    """Return how often a model agrees; None if no recorded instance measures that."""
    return next((each for each in AGREEMENTS if (each.model, each.part) == (model, part)), None)
