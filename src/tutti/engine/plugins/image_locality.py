"""ImageLocality: prefer nodes that have the pod's large images already, the more so the more nodes have them."""

from __future__ import annotations

import numpy as np

from tutti.cluster.cluster import Cluster
from tutti.cluster.columns import Ints
from tutti.cluster.spec_classes import SpecClass
from tutti.engine.plugins.base import MAX_SCORE, NodePlugin, NodeRows

_MIB = 1024 * 1024
_SMALLEST = 23 * _MIB
_LARGEST = 1000 * _MIB


class ImageLocality(NodePlugin):
    """Scores by the size of images that are there."""

    name = "ImageLocality"

    def score(self, window: NodeRows, spec: SpecClass) -> Ints | None:
        """Scale the sum of the sizes from 23 MiB to 1000 MiB per image."""
        nodes = window.nodes
        if not any(image in nodes.image_rows for image in spec.images):
            return np.zeros(len(window), dtype=np.int64)
        sizes = np.zeros(nodes.size, dtype=np.int64)
        for image in spec.images:
            rows = nodes.image_rows.get(image)
            if rows:
                share = int(float(nodes.image_size[image]) * (len(rows) / nodes.count))
                sizes[list(rows)] += share
        largest = _LARGEST * len(spec.images)
        clamped = np.clip(sizes[window.rows], _SMALLEST, max(largest, _SMALLEST))
        return MAX_SCORE * (clamped - _SMALLEST) // max(largest - _SMALLEST, 1)

    def version(self, cluster: Cluster, spec: SpecClass) -> int:
        """Scores of all nodes move with the number of nodes that have an image, and of nodes."""
        nodes = cluster.nodes
        return nodes.images_shape if any(image in nodes.image_rows for image in spec.images) else -1
