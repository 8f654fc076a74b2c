"""How far the rank of a layer could move with other tests: the delete-a-group jackknife.

The tests form G groups. Leaving each out in turn gives G scores of every layer; the sum of their squared deviations,
times (G − 1)/G, is the squared standard error of a score, and of the difference of two (smaller where both move
together). A layer is above another where the difference of their scores is more than t standard errors, t being the
97.5 % quantile of Student's distribution with G − 1 degrees of freedom. Few failing tests, large errors: then many
ranks are possible.

Source: Efron, The Jackknife, the Bootstrap and Other Resampling Plans, SIAM 1982, chapter 3.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from .ranking import TIE

if TYPE_CHECKING:
    from numpy.typing import NDArray

QUANTILES = {8: 2.3646}
"""t for the number of groups that are used (7 degrees of freedom)."""


def rank_intervals(scores: NDArray[np.float64], without: NDArray[np.float64]) -> tuple[tuple[int, int], ...]:
    """The best and the worst rank of each layer, 1 the most suspicious.

    Args:
        scores: of the layers, shape (layers,).
        without: the same with one group of tests left out, shape (groups, layers).
    """
    groups, layers = without.shape
    centred = without - without.mean(axis=0)
    covariance = (groups - 1) / groups * centred.T @ centred
    own = np.diag(covariance)
    error = np.sqrt(np.maximum(own[:, None] + own[None, :] - 2 * covariance, 0.0))
    above = scores[None, :] - scores[:, None]  # how far layer j is above layer i
    noise = TIE * np.maximum(np.maximum(abs(scores[None, :]), abs(scores[:, None])), 1e-12)
    certain = abs(above) > QUANTILES[groups] * error + noise
    best = 1 + (certain & (above > 0)).sum(axis=1)
    worst = layers - (certain & (above < 0)).sum(axis=1)
    return tuple(zip(best.tolist(), worst.tolist(), strict=True))
