"""Example bodies in the OpenAPI document, by route and title; tests post each of them."""

from __future__ import annotations

from typing import Any

Tree = dict[str, Any]


def _pod(name: str, cpu: str, memory: str) -> Tree:
    containers = [{"name": "main", "resources": {"requests": {"cpu": cpu, "memory": memory}}}]
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "namespace": "shop"},
        "spec": {"containers": containers},
        "status": {"phase": "Pending"},
    }


GARDENER: dict[str, Tree] = {
    "one pool": {
        "ID": "example",
        "SnapshotTime": "2026-11-16T08:00:00Z",
        "AutoscalerConfig": {
            "NodeTemplates": {
                "workers-z1": {
                    "Name": "workers-z1",
                    "InstanceType": "m5.large",
                    "Region": "eu-west-1",
                    "Zone": "eu-west-1a",
                    "Capacity": {"cpu": "2", "memory": "8Gi", "pods": "110"},
                    "Allocatable": {"cpu": "1920m", "memory": "6776184Ki", "pods": "110"},
                    "Labels": {"worker.gardener.cloud/pool": "workers"},
                }
            },
            "NodeGroups": {
                "workers-z1": {"Name": "workers-z1", "PoolName": "workers", "Zone": "eu-west-1a", "MaxSize": 3}
            },
        },
        "WorkerPools": [
            {"Name": "workers", "MachineType": "m5.large", "Minimum": 0, "Maximum": 3, "Zones": ["eu-west-1a"]}
        ],
        "Pods": [
            {
                "Name": "web-0",
                "Namespace": "shop",
                "PodScheduleStatus": 0,
                "Spec": {
                    "containers": [{"name": "web", "resources": {"requests": {"cpu": "1", "memory": "4Gi"}}}],
                },
            }
        ],
        "Nodes": [],
    },
    "nothing to do": {"ID": "empty", "Pods": [], "Nodes": []},
}

TUTTI: dict[str, Tree] = {
    "cluster and pools": {
        "cluster": {
            "apiVersion": "v1",
            "kind": "List",
            "items": [_pod("web-0", "1", "4Gi"), _pod("web-1", "1", "4Gi")],
        },
        "pools": {
            "region": "eu-west-1",
            "pools": [
                {"name": "general", "instanceTypes": ["m5.large", "m5.xlarge"], "zones": ["eu-west-1a"], "max": 8}
            ],
        },
        "options": {"objective": "cost", "timeLimit": 2},
    },
    "a case by hand": {
        "nodePools": [{"name": "p1", "zones": ["eu-west-1a"], "max": 4, "current": 0, "instanceType": "m5.large"}],
        "pods": [{"namePrefix": "web-", "requests": {"cpu": "1", "memory": "3Gi"}, "count": 3}],
    },
    "a Gardener snapshot": GARDENER["one pool"],
}

PLANNER: dict[str, Tree] = {
    "one pool": {
        "id": "plan-1",
        "correlationID": "shop",
        "scoringStrategy": "least-cost",
        "AdviceGenerationTimeout": 2_000_000_000,
        "constraint": {
            "apiVersion": "sa.gardener.cloud/v1alpha1",
            "kind": "ScalingConstraint",
            "metadata": {"name": "shop", "namespace": "default"},
            "spec": {
                "nodePools": [
                    {
                        "name": "workers",
                        "region": "eu-west-1",
                        "availabilityZones": ["eu-west-1a"],
                        "nodeTemplates": [
                            {
                                "name": "m5l",
                                "instanceType": "m5.large",
                                "capacity": {"cpu": "2", "memory": "8Gi"},
                                "kubeReservedCapacity": {"cpu": "80m", "memory": "1Gi"},
                            }
                        ],
                    }
                ]
            },
        },
        "snapshot": {
            "pods": [
                {"name": "web-0", "namespace": "shop", "aggregatedRequests": {"cpu": "1", "memory": "4Gi"}},
                {"name": "web-1", "namespace": "shop", "aggregatedRequests": {"cpu": "1", "memory": "4Gi"}},
            ]
        },
    },
    "nothing to do": {"id": "plan-2", "constraint": {"spec": {"nodePools": []}}, "snapshot": {"pods": []}},
}
