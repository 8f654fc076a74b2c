"""The engine that users get: the real entry, the real session, real Keras."""

from __future__ import annotations

import asyncio

from guider_engine.wire import Inputs, Progress
from guider_ls.analysis.engine import ENTRY, Engine

from .conftest import DEADLINE, EngineFactory

TRAIN = """
import keras
import numpy as np

x = np.random.default_rng(7).normal(size=(400, 4)).astype("float32")
y = (x[:, 0] * x[:, 1] > 0).astype("int64")
keras.utils.set_random_seed(7)
model = keras.Sequential([keras.Input((4,)), keras.layers.Dense(6, "relu"), keras.layers.Dense(2, "softmax")])
model.compile("sgd", "sparse_categorical_crossentropy")
model.fit(x, y, epochs=1)
model.save("model.keras")
np.savez("tests.npz", x=x, y=y)
"""


async def test_localize_cancel_and_localize_again(new_engine: EngineFactory, engine: Engine) -> None:
    await engine.inspect(TRAIN)
    root = engine.root
    inputs = Inputs(str(root / "model.keras"), (str(root / "tests.npz"),), str(root))
    seen: list[Progress] = []
    real = new_engine(entry=ENTRY)

    result = await real.localize(inputs, seen.append)
    assert real.hello is not None
    assert [layer.class_name for layer in result.model.layers] == ["Dense", "Dense"]
    assert result.tests.failed > 0
    assert result.tests.total == 400
    assert sorted(layer.rank or 0 for layer in result.layers)[0] == 1
    assert {"import", "model", "tests"} <= {progress.stage for progress in seen}

    hello = real.hello
    reached = asyncio.Event()
    fresh = Inputs(inputs.model, inputs.test_data, inputs.root, seed=8)
    task = asyncio.create_task(real.localize(fresh, lambda _: reached.set()))
    await asyncio.wait_for(reached.wait(), DEADLINE)
    task.cancel()
    await asyncio.wait([task], timeout=DEADLINE)
    assert task.done()

    again = await real.localize(inputs)
    assert again.layers == result.layers
    assert real.hello is hello
    assert (await real.inspect(inputs.model)).layers == result.model.layers
    assert (await real.probe(inputs)).layers == result.model.layers
