"""deepmufl's released code beside ours: the same model and tests; a part of its mutants, extended to all of them.

Usage: ``python -m benchmarks.mutants FOLDER [EVERY]``, where ``FOLDER`` is a copy of its repository. The last
line is its processor seconds, ours, how many mutants it makes, how many of them were run, and how many of those failed.

Its own generator makes the mutants of LeNet-5, its own executor runs every 40th of them on 1,000 tests. Their seconds
are multiplied by all mutants over those run; dividing the tests into passed and failed counts once.

As it was released, the generator stops at its first mutant, because the model is passed on without the name of a file:
that call is made right here. The operators that delete and double a layer are left out, 6 mutants of LeNet-5: the
first deletes the fifth layer, whichever is meant, and the second needs a Keras whose list of layers can be changed.
Nothing else is changed.
"""

from __future__ import annotations

import os
import sys
import tempfile
from pathlib import Path
from typing import Any

from benchmarks.released import _lenet5, _old_keras, _seconds
from benchmarks.speed import INPUTS, Arrays, localize, plan_of

from guider_engine.load.describe import summarize
from guider_engine.load.loss import loss_of
from guider_engine.load.model import LoadedModel

EVERY = 40
STEPS = (
    "apply_math_weight",
    "apply_math_weight_conv",
    "apply_math_bias",
    "apply_math_bias_conv",
    "apply_math_filters",
    "apply_math_kernel_sz",
    "apply_math_strides",
    "apply_math_pool_sz",
    "apply_padding_replacement",
    "apply_activation_function_replacement",
)
"""What its main program calls, in its order, without what changes recurrent layers, which LeNet-5 has none of."""


def main() -> None:
    """Run it."""
    folder, every = Path(sys.argv[1]).absolute(), int(sys.argv[2]) if len(sys.argv) > 2 else EVERY
    model, tests = _lenet5(_old_keras())
    with tempfile.TemporaryDirectory() as place:
        os.chdir(place)  # where it writes mutants
        theirs, *counts = deepmufl(model, tests, folder, every)
        os.chdir(folder)  # a present folder is not removed on every system
    loaded = LoadedModel(model, summarize(model, loss_of(model)))
    plan = plan_of(loaded, tests, INPUTS, 512)
    localize(plan, tests, INPUTS)
    ours = min(_seconds(lambda: localize(plan, tests, INPUTS)) for _ in range(5))
    print(theirs, ours, *counts)


def deepmufl(model: Any, tests: Arrays, folder: Path, every: int) -> tuple[float, int, int, int]:
    """Its seconds for all mutants; how many there are, were run, and cannot be; it writes to the present folder."""
    from tf_keras.src.layers import convolutional
    from tf_keras.src.layers.convolutional import base_conv

    sys.modules["keras.layers.convolutional"] = convolutional
    sys.modules["keras.layers.convolutional.base_conv"] = base_conv
    sys.path.insert(0, str(folder / "src"))
    from comparator import comparator_factory  # type: ignore[import-not-found]
    from mutation_executor import MutationExecutor  # type: ignore[import-not-found]
    from mutation_generator import MutationGenerator  # type: ignore[import-not-found]
    from test_case_splitter import TestCaseSplitter  # type: ignore[import-not-found]

    made: list[str] = []

    class Part(MutationGenerator):  # type: ignore[misc]
        """Writes a part of the mutants."""

        def _submit_model(self, v_path: list[str]) -> None:
            self._submit_model_file(v_path, self._model)

        def _submit_model_file(self, v_path: list[str], model: Any) -> None:
            made.append("-".join(v_path))
            if len(made) % every == 0:
                super()._submit_model_file(v_path, model)

    model.save("model.h5")

    def generate() -> None:
        generator = Part("model.h5")
        for step in STEPS:
            getattr(generator, step)()
        generator.close()

    comparator = comparator_factory("class")
    splitter = TestCaseSplitter("model.h5", tests.inputs, tests.labels, comparator)
    executor = MutationExecutor(splitter, comparator)
    spent = _seconds(generate)
    split = _seconds(splitter.split)
    spent += _seconds(executor.test)
    ran = executor.get_mutants_total_count()
    failed = executor.get_non_viable_mutants_total_count()
    return split + spent * len(made) / ran, len(made), ran, failed


if __name__ == "__main__":
    main()
