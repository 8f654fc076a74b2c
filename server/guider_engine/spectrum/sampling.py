"""Which neurons of a large layer are kept (GUIDER, released code)."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray


class Sampler:
    """Draws neurons layer by layer from one random stream, so the order of the calls is part of the result."""

    def __init__(self, limit: int | None, seed: int) -> None:
        """Keep at most ``limit`` neurons a layer (``None``: all), drawn from ``seed``."""
        self._limit = limit
        self._random = np.random.RandomState(seed)

    def draw(self, size: int) -> NDArray[np.int64] | None:
        """Ascending indices of the neurons to keep, drawn **with replacement**; ``None`` where all are kept."""
        if self._limit is None or size <= self._limit:
            return None
        return np.sort(self._random.randint(0, size, self._limit)).astype(np.int64)
