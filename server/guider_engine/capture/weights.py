"""Whether a model's weights changed."""

from __future__ import annotations

import hashlib
from typing import Any

MOST = 100_000
"""Values of each weight that are looked at."""


def digest(model: Any) -> str | None:
    """A digest of the trainable weights, or ``None`` where they cannot be read."""
    import numpy as np
    import tensorflow as tf

    found = hashlib.sha256()
    try:
        with tf.init_scope():  # out of the graph of a step that is being traced
            for weight in model.trainable_weights:
                values = np.asarray(weight).reshape(-1)
                found.update(np.ascontiguousarray(values[:: max(1, len(values) // MOST)]).tobytes())
    except Exception:  # not built yet, or inside a function that makes them
        return None
    return found.hexdigest()
