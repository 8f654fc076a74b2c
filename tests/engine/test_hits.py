"""The hit spectrum against counting by hand, whatever the batches."""

from __future__ import annotations

from typing import Any

import keras
import numpy as np
import pytest
from keras import layers
from tests.engine.counting import hits_of

from guider_engine.spectrum.hits import GROUPS, HUGE, MEASURED, SPARSE


def identity(size: int) -> Any:
    """A model whose one layer puts out what is put in."""
    return keras.Sequential([keras.Input((size,)), layers.Activation("linear")])


def by_hand(x: Any, failed: Any, r: Any) -> Any:
    active = x > 0.1
    rows = [failed, ~failed]
    return (
        np.stack([(active & row[:, None]).sum(0) for row in rows]),
        np.stack([(active * (r * row)[:, None]).sum(0) for row in rows]),
    )


@pytest.mark.parametrize("size", [7, 30, 64])
def test_counts_are_those_of_counting_by_hand(size: int) -> None:
    """Also where the last batch is padded, and where confidences need all their digits."""
    random = np.random.default_rng(1)
    x = random.normal(size=(30, 5)).astype(np.float32)
    failed, r = random.random(30) < 0.3, random.random(30) * 1e3 + 1 / 3
    found = hits_of(identity(5), x, failed, r, size=size)
    counts, confidence = by_hand(x, failed, r)
    layer = found.hits.layers[0,]
    assert (layer.counts == counts).all()
    np.testing.assert_allclose(layer.confidence, confidence, rtol=1e-8)
    assert found.hits.counts == (failed.sum(), (~failed).sum())
    np.testing.assert_allclose(found.hits.confidence, (r[failed].sum(), r[~failed].sum()))
    assert found.hits.confidence_range == (r.min(), r.max())


def test_groups_share_the_tests_of_either_outcome_evenly() -> None:
    random = np.random.default_rng(2)
    x = random.normal(size=(50, 3)).astype(np.float32)
    failed, r = random.random(50) < 0.4, random.random(50)
    found = hits_of(identity(3), x, failed, r, size=9)
    layer = found.hits.layers[0,]
    assert layer.groups.shape == (4, GROUPS, 3)
    assert (layer.groups[:2].sum(axis=1) == layer.counts).all()
    for outcome in (0, 1):
        assert np.ptp(found.hits.groups[outcome]) <= 1
        turns = np.flatnonzero(failed == (outcome == 0))
        third = turns[2::GROUPS]
        assert (layer.groups[outcome, 2] == (x[third] > 0.1).sum(0)).all()
        np.testing.assert_allclose(found.hits.groups[2 + outcome, 2], r[third].sum())


@pytest.mark.parametrize("neurons", [MEASURED + 1, HUGE + 3])
def test_layers_with_many_neurons_are_counted_whole_and_measured_in_part(neurons: int) -> None:
    random = np.random.default_rng(3)
    x = random.normal(size=(20, neurons)).astype(np.float32)
    failed, r = random.random(20) < 0.5, random.random(20)
    found = hits_of(identity(neurons), x, failed, r, size=8, neurons_per_layer=None)
    counts, confidence = by_hand(x, failed, r)
    layer = found.hits.layers[0,]
    assert (layer.counts == counts).all()
    np.testing.assert_allclose(layer.confidence, confidence, rtol=1e-5)
    assert layer.measured is not None
    assert SPARSE / 2 <= len(layer.measured) <= SPARSE
    assert (layer.groups[:2].sum(axis=1) == layer.counts[:, layer.measured]).all()
    assert (found.statistics[0,].maximum == x.max(0)[layer.measured]).all()


def test_statistics_are_those_of_the_tests() -> None:
    x = np.array([[0.0, 2, np.nan, 0.995], [0, 2, 1, 1], [0, 2, -1, 0.999], [0, 2, 0.5, 1]], np.float32)
    failed = np.array([True, False, True, False])
    found = hits_of(identity(4), x, failed, size=3, activations={(0,): "sigmoid"})
    layer = found.statistics[0,]
    assert layer.tests == (2, 2)
    np.testing.assert_allclose(layer.mean, [[0, 2, -0.5, 0.997], [0, 2, 0.75, 1]], rtol=1e-6)
    np.testing.assert_allclose(layer.std, [[0, 0, 0.5, 0.002], [0, 0, 0.25, 0]], rtol=1e-3, atol=1e-7)
    assert layer.not_finite.tolist() == [False, False, True, False]
    assert layer.dead.tolist() == [True, False, False, False]
    assert layer.saturated.tolist() == [False, True, False, True]
    assert layer.minimum.tolist() == pytest.approx([0, 2, -1, 0.995])


def test_the_worst_tests_are_the_most_confidently_failing_ones() -> None:
    r = np.arange(20) / 20
    found = hits_of(identity(2), np.zeros((20, 2), np.float32), np.arange(20) % 2 == 0, r, size=6)
    assert [test.index for test in found.worst] == [18, 16, 14, 12, 10]
    assert found.worst[0].labels.tolist() == [1.0, 0.9]


def test_other_weights_need_no_other_trace() -> None:
    model = keras.Sequential([keras.Input((3,)), layers.Dense(2, use_bias=False)])
    x = np.ones((10, 3), np.float32)
    model.layers[0].set_weights([np.array([[1.0, -1], [0, 0], [0, 0]])])
    found = hits_of(model, x, np.ones(10, bool), size=4)
    assert found.hits.layers[0,].counts[0].tolist() == [10, 0]
    traces = found.stream.traces
    model.layers[0].set_weights([np.array([[-1.0, 1], [0, 0], [0, 0]])])
    assert found.again().layers[0,].counts[0].tolist() == [0, 10]
    assert found.stream.traces == traces == 1


def test_a_neuron_that_is_always_active_has_the_sums_of_all_tests_to_the_last_bit() -> None:
    """D* divides by their difference."""
    random = np.random.default_rng(6)
    x = np.ones((100, MEASURED + 9), np.float32)
    r = random.random(100) * 1e8
    for neurons in (3, MEASURED + 9):
        found = hits_of(
            identity(neurons), x[:, :neurons], random.random(100) < 0.5, r, size=32, neurons_per_layer=None
        )
        layer = found.hits.layers[0,]
        assert (layer.confidence == np.array(found.hits.confidence)[:, None]).all()
        assert (layer.groups == found.hits.groups[:, :, None]).all()
