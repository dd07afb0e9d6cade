"""ImageLocality: prefer nodes that already have the pod's large images.

An image counts more when more nodes have it, so that one node does not attract all pods.
"""

from __future__ import annotations

import numpy as np

from tutti.cluster.cluster import Cluster
from tutti.cluster.columns import Ints
from tutti.cluster.spec_classes import SpecClass
from tutti.engine.plugins.base import MAX_SCORE, NodePlugin, NodeRows

_MIB = 1024 * 1024
_MIN_THRESHOLD = 23 * _MIB
_MAX_CONTAINER_THRESHOLD = 1000 * _MIB


class ImageLocality(NodePlugin):
    """kube-scheduler's ImageLocality: score only."""

    name = "ImageLocality"

    def score(self, node_rows: NodeRows, spec: SpecClass) -> Ints | None:
        """Scale the sum of the image sizes to 0..100, between 23 MiB and 1000 MiB per image."""
        nodes = node_rows.nodes
        if not any(image in nodes.image_rows for image in spec.images):
            return np.zeros(len(node_rows), dtype=np.int64)
        sizes = np.zeros(nodes.size, dtype=np.int64)
        for image in spec.images:
            rows = nodes.image_rows.get(image)
            if rows:
                share = int(float(nodes.image_size[image]) * (len(rows) / nodes.count))
                sizes[list(rows)] += share
        max_threshold = _MAX_CONTAINER_THRESHOLD * len(spec.images)
        clamped = np.clip(sizes[node_rows.rows], _MIN_THRESHOLD, max(max_threshold, _MIN_THRESHOLD))
        return MAX_SCORE * (clamped - _MIN_THRESHOLD) // max(max_threshold - _MIN_THRESHOLD, 1)

    def score_version(self, cluster: Cluster, spec: SpecClass) -> int:
        """Return a version of the node images: the scores of all nodes depend on how many nodes have an image."""
        nodes = cluster.nodes
        return nodes.images_version if any(image in nodes.image_rows for image in spec.images) else -1
