"""How often each model gave the real program's answer, measured on the recorded instances.

Contract: constants; `tutti conformance --model tests/conformance/purchases/*` prints the same numbers, and the tests
measure them again. A model agrees if its answer is one that the real program gave in some run on the same input, and it
is exact if that is the recorded run. Karpenter chooses domains at random and Cluster Autoscaler draws lots among equal
options and lists nodes in random order, so nobody can be exact everywhere.
"""

from __future__ import annotations

from typing import NamedTuple

KARPENTER, CLUSTER_AUTOSCALER = "karpenter", "cluster-autoscaler"
PURCHASE = "purchase"


class Agreement(NamedTuple):
    """How often a model agreed with the real program in one thing."""

    who: str
    """The model; with an expander as ``cluster-autoscaler/price``."""
    what: str
    cases: int
    exact: int
    agree: int

    def __str__(self) -> str:
        return f"{self.agree} of {self.cases}"

    @property
    def share(self) -> float:
        """Between 0 and 1."""
        return self.agree / self.cases


AGREEMENTS = (
    # Nodes, cost and pods left after the first pass; which pods share a node; the same after all passes.
    Agreement(KARPENTER, PURCHASE, cases=104, exact=100, agree=104),
    Agreement(KARPENTER, "claims", cases=96, exact=96, agree=96),
    Agreement(KARPENTER, "settled", cases=2, exact=2, agree=2),
    # The group that each loop buys from and how many nodes, over the whole course.
    Agreement(CLUSTER_AUTOSCALER, PURCHASE, cases=65, exact=63, agree=65),
    Agreement(f"{CLUSTER_AUTOSCALER}/least-waste", PURCHASE, cases=24, exact=22, agree=24),
    Agreement(f"{CLUSTER_AUTOSCALER}/most-pods", PURCHASE, cases=26, exact=26, agree=26),
    Agreement(f"{CLUSTER_AUTOSCALER}/price", PURCHASE, cases=15, exact=15, agree=15),
    # Its parts: the estimator alone, each option of the first loop, the expander on recorded options.
    Agreement(CLUSTER_AUTOSCALER, "estimate", cases=16, exact=16, agree=16),
    Agreement(CLUSTER_AUTOSCALER, "options", cases=343, exact=331, agree=340),
    Agreement(CLUSTER_AUTOSCALER, "choice", cases=126, exact=126, agree=126),
    # Scale-down: the nodes found unneeded, why the others are not, how full each is, and what is deleted.
    Agreement(CLUSTER_AUTOSCALER, "removable", cases=19, exact=15, agree=19),
    Agreement(CLUSTER_AUTOSCALER, "reasons", cases=19, exact=15, agree=19),
    Agreement(CLUSTER_AUTOSCALER, "utilization", cases=19, exact=19, agree=19),
    Agreement(CLUSTER_AUTOSCALER, "deleted", cases=19, exact=15, agree=19),
)


def agreement_of(who: str, what: str = PURCHASE) -> Agreement | None:
    """How often a model agreed; None if nothing was recorded to measure it with."""
    return next((each for each in AGREEMENTS if (each.who, each.what) == (who, what)), None)
