"""The engine, for programs written for an older Keras: the entry of the process that `benchmarks.mapping` runs.

Old spellings go on working (modules gone or moved, arguments renamed), data sets that would be downloaded are
random numbers of their shapes, pre-trained weights are none, and packages that are absent fail when they are used
instead of when they are imported. All of it wraps what Keras and others offer: which line of a program constructs
which layer stays as it was. CPU seconds and memory are limited: what a program built until then counts.
"""

from __future__ import annotations

import functools
import importlib
import importlib.abc
import importlib.machinery
import importlib.util
import inspect
import os
import signal
import sys
import threading
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import FrameType, ModuleType
from typing import Any

ENTRY = Path(__file__).resolve().parents[1] / "server" / "guider_engine" / "__main__.py"

# Packages that need not be there: using one fails, importing it does not.

ABSENT = [
    "IPython",
    "conlleval",
    "jiwer",
    "networkx",
    "rdkit",
    "autokeras",
    "baselines",
    "cv2",
    "datasets",
    "emoji",
    "gdown",
    "gensim",
    "gym",
    "hdbscan",
    "huggingface_hub",
    "hyperas",
    "hyperopt",
    "imageio",
    "imblearn",
    "imgaug",
    "imutils",
    "ipywidgets",
    "kaggle",
    "keras_contrib",
    "keras_core",
    "keras_cv",
    "keras_hub",
    "keras_nlp",
    "keras_tuner",
    "librosa",
    "lightgbm",
    "medmnist",
    "moviepy",
    "music21",
    "nibabel",
    "nltk",
    "official",
    "pretty_midi",
    "pytorch_lightning",
    "pyts",
    "seaborn",
    "skimage",
    "sklearn_pandas",
    "spacy",
    "spectral",
    "sympy",
    "talos",
    "tensorflow_addons",
    "tensorflow_cloud",
    "tensorflow_datasets",
    "tensorflow_decision_forests",
    "tensorflow_docs",
    "tensorflow_hub",
    "tensorflow_io",
    "tensorflow_probability",
    "tensorflow_text",
    "theano",
    "tokenizers",
    "torchvision",
    "transformers",
    "trimesh",
    "wandb",
    "xgboost",
    "yfinance",
]

# Modules gone or moved: the old name, and where its names are now.

MOVED = {
    "keras.engine": ("keras", "keras.layers", "keras.models"),
    "keras.engine.input_layer": ("keras.layers", "keras"),
    "keras.engine.sequential": ("keras.models",),
    "keras.engine.topology": ("keras.layers", "keras.models", "keras"),
    "keras.engine.training": ("keras.models",),
    "keras.initializers.initializers_v1": ("keras.initializers",),
    "keras.initializers.initializers_v2": ("keras.initializers",),
    "keras.layers.advanced_activations": ("keras.layers",),
    "keras.layers.convolutional": ("keras.layers",),
    "keras.layers.convolutional_recurrent": ("keras.layers",),
    "keras.layers.core": ("keras.layers",),
    "keras.layers.embeddings": ("keras.layers",),
    "keras.layers.experimental": ("keras.layers",),
    "keras.layers.experimental.preprocessing": ("keras.layers",),
    "keras.layers.local": ("keras.layers",),
    "keras.layers.merge": ("keras.layers",),
    "keras.layers.noise": ("keras.layers",),
    "keras.layers.normalization": ("keras.layers",),
    "keras.layers.pooling": ("keras.layers",),
    "keras.layers.preprocessing": ("keras.layers",),
    "keras.layers.recurrent": ("keras.layers",),
    "keras.layers.wrappers": ("keras.layers",),
    "keras.objectives": ("keras.losses",),
    "keras.optimizers.experimental": ("keras.optimizers",),
    "keras.optimizer_v1": ("keras.optimizers",),
    "keras.optimizer_v2": ("keras.optimizers",),
    "keras.preprocessing.image": ("keras._tf_keras.keras.preprocessing.image", "keras.utils"),
    "keras.preprocessing.sequence": ("keras._tf_keras.keras.preprocessing.sequence",),
    "keras.preprocessing.text": ("keras._tf_keras.keras.preprocessing.text",),
    "keras.regularizers.l2": ("keras.regularizers",),
    "keras.utils.data_utils": ("keras.utils",),
    "keras.utils.generic_utils": ("keras.utils",),
    "keras.utils.layer_utils": ("keras.utils",),
    "keras.utils.np_utils": ("keras.utils",),
    "keras.utils.training_utils": ("keras.utils",),
    "keras.utils.vis_utils": ("keras.utils",),
    "keras.wrappers.scikit_learn": ("keras.wrappers",),
}
MOVED_OUT_OF_TENSORFLOW = (
    "applications",
    "callbacks",
    "datasets",
    "layers",
    "models",
    "optimizers",
    "preprocessing",
)
"""What programs took from ``tensorflow.python.keras``; Keras does not know the classes that it still has."""
PREFIXES = ("tensorflow.keras", "keras._tf_keras.keras", "keras")

OLD_NAMES = {
    "AtrousConvolution2D": "Conv2D",
    "Convolution1D": "Conv1D",
    "Convolution2D": "Conv2D",
    "Convolution3D": "Conv3D",
    "CuDNNGRU": "GRU",
    "CuDNNLSTM": "LSTM",
    "Deconvolution2D": "Conv2DTranspose",
    "MaxPool2D": "MaxPooling2D",
    "SyncBatchNormalization": "BatchNormalization",
}

# Arguments of layers: class of Keras (and those derived from it), old name, new name ("" drops it).

EVERY_LAYER = {
    "init": "kernel_initializer",
    "W_regularizer": "kernel_regularizer",
    "b_regularizer": "bias_regularizer",
    "W_constraint": "kernel_constraint",
    "b_constraint": "bias_constraint",
    "bias": "use_bias",
    "weights": "",
    "input_length": "",
    "batch_size": "",
    "batch_input_shape": "batch_input_shape",
}
BY_CLASS = {
    "Dense": {"output_dim": "units"},
    "BaseConv": {
        "nb_filter": "filters",
        "filter_length": "kernel_size",
        "border_mode": "padding",
        "subsample": "strides",
        "subsample_length": "strides",
        "dim_ordering": "data_format",
        "atrous_rate": "dilation_rate",
    },
    "BasePooling": {
        "border_mode": "padding",
        "dim_ordering": "data_format",
        "pool_length": "pool_size",
        "stride": "strides",
    },
    "Dropout": {"p": "rate"},
    "Embedding": {"dropout": ""},
    "RNN": {
        "output_dim": "units",
        "inner_activation": "recurrent_activation",
        "inner_init": "recurrent_initializer",
        "dropout_W": "dropout",
        "dropout_U": "recurrent_dropout",
        "U_regularizer": "recurrent_regularizer",
        "implementation": "",
        "forget_bias_init": "",
        "consume_less": "",
        "time_major": "",
    },
    "BatchNormalization": {
        "mode": "",
        "beta_init": "beta_initializer",
        "gamma_init": "gamma_initializer",
        "fused": "",
        "renorm": "",
        "virtual_batch_size": "",
    },
    "LeakyReLU": {"alpha": "negative_slope"},
    "ZeroPadding2D": {"dim_ordering": "data_format"},
    "UpSampling2D": {"dim_ordering": "data_format"},
    "Flatten": {"dim_ordering": "data_format"},
}
VALUES = {("data_format", "tf"): "channels_last", ("data_format", "th"): "channels_first"}

FIT = {
    "nb_epoch": "epochs",
    "show_accuracy": "",
    "samples_per_epoch": "",
    "nb_val_samples": "",
    "workers": "",
    "use_multiprocessing": "",
    "max_queue_size": "",
    "pickle_safe": "",
}
OPTIMIZER = {"lr": "learning_rate", "decay": "", "schedule_decay": "", "rho_decay": ""}


class UsedUp(BaseException):  # programs catch Exception
    """The program used more CPU seconds or memory than it may."""


@dataclass(frozen=True, slots=True)
class BatchShape:
    """Shape of a batch, which a `Sequential` passes from its first layer to the input layer that it inserts."""

    whole: tuple[Any, ...]


# Wrapping


def renamed(kwargs: dict[str, Any], names: dict[str, str]) -> dict[str, Any]:
    """Arguments under their new names; those with an empty new name left out."""
    result: dict[str, Any] = {}
    for name, value in kwargs.items():
        new = names.get(name, name)
        if new and (new == name or new not in kwargs):
            result[new] = VALUES.get((new, value), value) if isinstance(value, str) else value
    return result


def layer_arguments(
    classes: Sequence[str], accepted: Iterable[str], args: tuple[Any, ...], kwargs: dict[str, Any]
) -> tuple[tuple[Any, ...], dict[str, Any]]:
    """Arguments of a layer as Keras takes them now.

    Args:
        classes: names of its class and of those it is derived from.
        accepted: parameters that its class has; they are never renamed.
        args: positional arguments.
        kwargs: named arguments.
    """
    names = dict(EVERY_LAYER)
    for name in classes:
        names |= BY_CLASS.get(name, {})
    names = {old: new for old, new in names.items() if old not in accepted}
    kwargs = dict(kwargs)
    if "nb_row" in kwargs and "nb_col" in kwargs:
        kwargs["kernel_size"] = (kwargs.pop("nb_row"), kwargs.pop("nb_col"))
    batch_shape = kwargs.pop("batch_input_shape", None)
    if batch_shape is not None:
        kwargs["input_shape"] = BatchShape(tuple(batch_shape))
    if isinstance(kwargs.get("shape"), BatchShape):
        kwargs["batch_shape"] = kwargs.pop("shape").whole
    if isinstance(kwargs.get("input_shape"), int):
        kwargs["input_shape"] = (kwargs["input_shape"],)
    sequence = isinstance(kwargs.get("input_length"), int) and isinstance(kwargs.get("input_dim"), int)
    if sequence and "Embedding" not in classes:
        kwargs["input_shape"] = (kwargs["input_length"], kwargs.pop("input_dim"))
    return args, renamed(kwargs, names)


def patch_layer(kind: type[Any]) -> None:
    """Have a class of Keras take the arguments of former versions."""
    init, own = kind.__init__, vars(kind).get("__new__")
    classes = [one.__name__ for one in kind.__mro__]
    accepted = set(inspect.signature(init).parameters)

    def translate(args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[tuple[Any, ...], dict[str, Any]]:
        return layer_arguments(classes, accepted, args, kwargs)

    @functools.wraps(init)
    def initialize(self: Any, *args: Any, **kwargs: Any) -> None:
        args, kwargs = translate(args, kwargs)
        init(self, *args, **kwargs)

    def make(cls: type[Any], *args: Any, **kwargs: Any) -> Any:
        args, kwargs = translate(args, kwargs)
        # The base's is looked up at every call: the engine replaces it later.
        new = super(kind, cls).__new__ if own is None else own.__func__
        return new(cls, *args, **kwargs)

    initialize.__signature__ = inspect.signature(init)  # type: ignore[attr-defined]
    _replace(kind, __init__=initialize, __new__=make)


def _replace(kind: type[Any], **methods: Any) -> None:
    for name, method in methods.items():
        setattr(kind, name, method)


def patch_method(kind: type[Any], name: str, change: Callable[[dict[str, Any]], dict[str, Any]]) -> None:
    """Change the arguments of a method before they reach it."""
    method = getattr(kind, name)

    names = list(inspect.signature(method).parameters)[1:]

    @functools.wraps(method)
    def call(self: Any, *args: Any, **kwargs: Any) -> Any:
        return method(self, **change(dict(zip(names, args, strict=False)) | kwargs))

    setattr(kind, name, call)


# What is done to a module right after it was executed


def layers(module: ModuleType) -> None:
    """Layers with their former names and arguments."""
    for value in list(vars(module).values()):
        is_layer = inspect.isclass(value) and issubclass(value, module.Layer) and value is not module.Layer
        if is_layer and "__init__" in vars(value):
            patch_layer(value)


def old_layer_names(module: ModuleType) -> None:
    """Former names of layers, in each of the modules that offer them."""
    for old, now in OLD_NAMES.items():
        if not hasattr(module, old):
            setattr(module, old, getattr(module, now))
    module.merge = merge  # type: ignore[attr-defined]
    module.experimental = importlib.import_module(f"{module.__name__}.experimental")  # type: ignore[attr-defined]


def merge(inputs: Any, mode: str = "sum", concat_axis: int = -1, **_kwargs: Any) -> Any:
    """The function of Keras 1."""
    import keras

    kinds = {"sum": "Add", "mul": "Multiply", "ave": "Average", "max": "Maximum", "dot": "Dot"}
    if mode == "concat":
        return keras.layers.Concatenate(axis=concat_axis)(inputs)
    return getattr(keras.layers, kinds[mode])()(inputs)


def input_layer(module: ModuleType) -> None:
    """``Input(shape=3)`` and ``Input(batch_shape=…)``."""
    make = module.Input

    @functools.wraps(make)
    def input_(*args: Any, **kwargs: Any) -> Any:
        if args and isinstance(args[0], int):
            args = ((args[0],), *args[1:])
        if isinstance(kwargs.get("shape"), int):
            kwargs["shape"] = (kwargs["shape"],)
        return make(*args, **kwargs)

    module.Input = input_  # type: ignore[attr-defined]


def optimizer(module: ModuleType) -> None:
    """Old arguments of optimizers, and whole numbers as learning rates."""
    for value in list(vars(module).values()):
        if inspect.isclass(value) and value.__module__ == module.__name__ and "__init__" in vars(value):
            _patch_optimizer(value)


def _patch_optimizer(kind: type[Any]) -> None:
    init, own = kind.__init__, vars(kind).get("__new__")

    def change(kwargs: dict[str, Any]) -> dict[str, Any]:
        kwargs = renamed(kwargs, OPTIMIZER)
        if kwargs.get("epsilon", 0.0) is None:
            del kwargs["epsilon"]
        if isinstance(kwargs.get("learning_rate"), int):
            kwargs["learning_rate"] = float(kwargs["learning_rate"])
        return kwargs

    @functools.wraps(init)
    def initialize(self: Any, *args: Any, **kwargs: Any) -> None:
        if args and isinstance(args[0], int):
            args = (float(args[0]), *args[1:])
        init(self, *args, **change(kwargs))

    def make(cls: type[Any], *args: Any, **kwargs: Any) -> Any:
        new: Any = own.__func__ if own is not None else super(kind, cls).__new__
        return new(cls) if new is object.__new__ else new(cls, *args, **change(kwargs))

    _replace(kind, __init__=initialize, __new__=make)


def application(module: ModuleType) -> None:
    """Ready-made networks without their trained weights."""
    for name, value in list(vars(module).items()):
        if not inspect.isfunction(value) or "weights" not in inspect.signature(value).parameters:
            continue

        def build(*args: Any, _network: Callable[..., Any] = value, **kwargs: Any) -> Any:
            bound = inspect.signature(_network).bind(*args, **kwargs)
            bound.arguments["weights"] = None
            return _network(*bound.args, **bound.kwargs)

        setattr(module, name, functools.wraps(value)(build))


def get_file(module: ModuleType) -> None:
    """Nothing is downloaded."""

    def refuse(fname: str | None = None, origin: str | None = None, *_args: Any, **_kwargs: Any) -> str:
        raise OSError(f"{fname or origin} would be downloaded")

    module.get_file = refuse  # type: ignore[attr-defined]


def no_picture(module: ModuleType) -> None:
    """Nothing is drawn of a model."""
    module.plot_model = lambda *_args, **_kwargs: None  # type: ignore[attr-defined]


def images(shape: tuple[int, ...], classes: int, column: bool, train: int, test: int) -> Callable[..., Any]:
    """A data set of pictures, as ``load_data`` gives it."""

    def load_data(*_args: Any, **_kwargs: Any) -> Any:
        import numpy as np

        random = np.random.default_rng(7)

        def part(count: int) -> tuple[Any, Any]:
            labels = (count, 1) if column else (count,)
            return (
                random.integers(0, 256, (count, *shape), dtype=np.uint8),
                (np.arange(count) % classes).astype(np.uint8).reshape(labels),
            )

        return part(train), part(test)

    return load_data


def texts(classes: int, train: int, test: int) -> Callable[..., Any]:
    """A data set of word numbers, as ``load_data`` gives it."""

    def load_data(
        path: str = "",
        num_words: int | None = None,
        skip_top: int = 0,
        maxlen: int | None = None,
        nb_words: int | None = None,
        **_kwargs: Any,
    ) -> Any:
        import numpy as np

        del path, skip_top
        random = np.random.default_rng(7)
        words = num_words or nb_words or 10_000

        def part(count: int) -> tuple[Any, Any]:
            x = np.empty(count, dtype=object)
            for index, length in enumerate(random.integers(10, min(maxlen or 200, 200), count)):
                x[index] = [1, *random.integers(4, words, length).tolist()]
            return x, np.arange(count) % classes

        return part(train), part(test)

    return load_data


def word_index(*_args: Any, **_kwargs: Any) -> dict[str, int]:
    """The words of a data set of `texts`."""
    return {f"word{number}": number for number in range(1, 10_000)}


def numbers(features: int) -> Callable[..., Any]:
    """A data set for regression, as ``load_data`` gives it."""

    def load_data(*_args: Any, **_kwargs: Any) -> Any:
        import numpy as np

        random = np.random.default_rng(7)
        x, y = random.normal(size=(506, features)), random.normal(22.0, 9.0, 506)
        return (x[:404], y[:404]), (x[404:], y[404:])

    return load_data


def data_set(**functions: Callable[..., Any]) -> Callable[[ModuleType], None]:
    """Replaces the functions of a module of data."""

    def replace(module: ModuleType) -> None:
        for name, function in functions.items():
            setattr(module, name, function)

    return replace


def backend(module: ModuleType) -> None:
    """Functions that only ``tf.keras.backend`` still has."""

    def find(name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        return getattr(importlib.import_module("keras._tf_keras.keras.backend"), name)

    module.__getattr__ = find  # type: ignore[method-assign]


def trainer(module: ModuleType) -> None:
    """Methods of models that are gone, and little work for the others."""
    kind = module.TensorFlowTrainer

    def fit_generator(self: Any, generator: Any, *args: Any, **kwargs: Any) -> Any:
        del args
        return self.fit(generator, **kwargs)

    def predict_classes(self: Any, x: Any, *args: Any, **kwargs: Any) -> Any:
        scores = self.predict(x, *args, **kwargs)
        return scores.argmax(axis=-1) if scores.shape[-1] > 1 else (scores > 0.5).astype("int32")

    predict = kind.predict

    @functools.wraps(predict)
    def predict_few(self: Any, x: Any, *args: Any, **kwargs: Any) -> Any:
        import numpy as np

        if not hasattr(x, "shape") or len(x) <= SMALL:
            return predict(self, x, *args, **kwargs)
        few = predict(self, x[:SMALL], *args, **kwargs)
        return np.resize(few, (len(x), *few.shape[1:])) if hasattr(few, "shape") else few

    kind.predict = predict_few
    patch_method(kind, "fit", old_fit)
    patch_method(kind, "evaluate", old_evaluate)
    kind.fit_generator = fit_generator
    kind.predict_generator = lambda self, generator, *_args, **_kwargs: self.predict(generator)
    kind.evaluate_generator = lambda self, generator, *_args, **_kwargs: self.evaluate(generator)
    kind.predict_classes = predict_classes
    kind.predict_proba = lambda self, x, *args, **kwargs: self.predict(x, *args, **kwargs)


def lower_case(module: ModuleType) -> None:
    """Losses under the names of their functions."""
    module.__getattr__ = in_modules(module.__name__, ("keras.src.losses.losses",))  # type: ignore[method-assign]


def training(module: ModuleType) -> None:
    """Arguments of ``compile``."""
    patch_method(module.Trainer, "compile", old_compile)


def old_fit(kwargs: dict[str, Any]) -> dict[str, Any]:
    """Arguments of ``fit`` as Keras takes them now, for one small batch: the layers are the same as after many."""
    kwargs = renamed(kwargs, FIT)
    if kwargs.get("shuffle") == "batch":
        kwargs["shuffle"] = True
    kwargs["epochs"] = (kwargs.get("initial_epoch") or 0) + 1
    kwargs["steps_per_epoch"] = 1
    if kwargs.get("validation_data") is not None or kwargs.get("validation_split"):
        kwargs["validation_steps"] = 1
    return _small(kwargs)


def old_evaluate(kwargs: dict[str, Any]) -> dict[str, Any]:
    """Arguments of ``evaluate``, for one small batch."""
    return _small(kwargs | {"steps": 1})


def _small(kwargs: dict[str, Any]) -> dict[str, Any]:
    if isinstance(kwargs.get("batch_size"), int):
        kwargs["batch_size"] = min(kwargs["batch_size"], SMALL)
    elif hasattr(kwargs.get("x"), "shape") or isinstance(kwargs.get("x"), list):
        kwargs["batch_size"] = SMALL
    return kwargs


SMALL = 8
"""Samples of the one batch that is trained on, and that are predicted."""


def old_compile(kwargs: dict[str, Any]) -> dict[str, Any]:
    """Arguments of ``compile`` as Keras takes them now; nothing is compiled for one batch."""
    kwargs = renamed(kwargs, {"class_mode": "", "options": "", "run_metadata": "", "sample_weight_mode": ""})
    for name in ("loss", "metrics"):
        if kwargs.get(name) == "logcosh":
            kwargs[name] = "log_cosh"
    return kwargs | {"run_eagerly": True}


def scikit_learn(module: ModuleType) -> None:
    """The wrappers that Keras had for scikit-learn."""

    try:
        from sklearn.base import BaseEstimator
    except ImportError:
        return

    class Wrapper(BaseEstimator):  # type: ignore[misc]
        def __init__(self, build_fn: Callable[..., Any] | None = None, **options: Any) -> None:
            self.build_fn = build_fn
            self.options = options

        def get_params(self, deep: bool = True) -> dict[str, Any]:
            del deep
            return {"build_fn": self.build_fn, **self.options}

        def set_params(self, **options: Any) -> Wrapper:
            self.options |= options
            return self

        def fit(self, x: Any, y: Any, **kwargs: Any) -> Any:
            import numpy as np

            assert self.build_fn is not None
            takes = inspect.signature(self.build_fn).parameters
            given = {name: value for name, value in self.options.items() if name in takes}
            self.model = self.build_fn(**given)
            y = np.asarray(y)
            self.classes_ = np.unique(y)
            units = self.model.output_shape[-1]
            if units > 1 and y.ndim == 1 and not isinstance(self, Regressor):
                y = np.eye(units)[np.searchsorted(self.classes_, y)]
            rest = {
                name: value
                for name, value in (self.options | kwargs).items()
                if name in {"epochs", "nb_epoch", "batch_size", "verbose", "callbacks", "validation_data"}
            }
            return self.model.fit(x, y, **rest)

        def predict(self, x: Any, **_kwargs: Any) -> Any:
            return self.model.predict(x).squeeze()

        def score(self, x: Any, y: Any, **_kwargs: Any) -> float:
            del x, y
            return 0.0

    class Classifier(Wrapper):
        _estimator_type = "classifier"

        def predict(self, x: Any, **_kwargs: Any) -> Any:
            scores = self.model.predict(x)
            return self.classes_[scores.argmax(axis=-1)] if scores.shape[-1] > 1 else scores > 0.5

    class Regressor(Wrapper):
        _estimator_type = "regressor"

    module.KerasClassifier = Classifier  # type: ignore[attr-defined]
    module.KerasRegressor = Regressor  # type: ignore[attr-defined]


def numpy(module: ModuleType) -> None:
    """Names that NumPy gave up."""
    names = {"int": int, "float": float, "bool": bool, "object": object, "str": str, "complex": complex}
    names |= {"float_": module.float64, "Inf": module.inf, "NaN": module.nan, "product": module.prod}
    for name, value in names.items():
        if name not in vars(module):
            setattr(module, name, value)


def old_tensorflow(module: ModuleType) -> None:
    """The copy of Keras that TensorFlow has for itself is Keras for programs."""
    del module
    package = sys.modules.get("tensorflow.python.keras")
    for name in MOVED_OUT_OF_TENSORFLOW:
        for loaded in [one for one in sys.modules if one.startswith(f"tensorflow.python.keras.{name}.")]:
            del sys.modules[loaded]
        alias = ModuleType(f"tensorflow.python.keras.{name}")
        alias.__getattr__ = in_modules(alias.__name__, (f"keras.{name}",))  # type: ignore[method-assign]
        alias.__path__ = []
        sys.modules[alias.__name__] = alias
        if package is not None:
            setattr(package, name, alias)


def scikit_data(module: ModuleType) -> None:
    """Data sets that scikit-learn gave up, or would download."""

    def boston(return_X_y: bool = False, **_kwargs: Any) -> Any:
        from sklearn.utils import Bunch

        (x, y), _ = numbers(13)()
        return (x, y) if return_X_y else Bunch(data=x, target=y, feature_names=[*"abcdefghijklm"])

    vars(module)["load_boston"] = boston
    for name in ("make_classification", "make_regression"):
        vars(module)[name] = smaller(vars(module)[name])


def smaller(make: Callable[..., Any]) -> Callable[..., Any]:
    """A generator of samples that takes no gigabytes: of many numbers, it gives noise."""
    signature = inspect.signature(make)

    @functools.wraps(make)
    def call(*args: Any, **kwargs: Any) -> Any:
        import numpy as np

        bound = signature.bind(*args, **kwargs)
        bound.apply_defaults()
        given = bound.arguments
        samples, features = given["n_samples"], given["n_features"]
        if samples * features < MOST_NUMBERS:
            return make(*args, **kwargs)
        classes = np.arange(samples) % given.get("n_classes", samples)
        targets = given.get("n_targets", 1)
        y = classes if targets == 1 else np.tile(classes[:, None], targets)
        return np.zeros((samples, features), np.float16), y

    return call


MOST_NUMBERS = 100_000_000


def iris(module: ModuleType) -> None:
    """The data set that seaborn would download, of those that scikit-learn has."""

    def load_dataset(name: str, **_kwargs: Any) -> Any:
        from sklearn.datasets import load_iris

        if name != "iris":
            raise OSError(f"{name} would be downloaded")
        data = load_iris(as_frame=True)
        frame = data.frame.set_axis(
            [*(one[:-5].replace(" ", "_") for one in data.feature_names), "species"], axis=1
        )
        return frame.assign(species=data.target_names[data.target])

    module.load_dataset = load_dataset  # type: ignore[attr-defined]


def pandas(module: ModuleType) -> None:
    """Methods that pandas gave up."""
    module.DataFrame.append = lambda self, other, **_kwargs: module.concat([self, module.DataFrame(other)])
    module.DataFrame.as_matrix = lambda self, *_args: self.to_numpy()
    module.Series.as_matrix = lambda self, *_args: self.to_numpy()


def pictures(module: ModuleType) -> None:
    """Windows that nobody would close."""
    module.show = lambda *_args, **_kwargs: None  # type: ignore[attr-defined]


def displays(module: ModuleType) -> None:
    """Pictures that no notebook shows."""
    for name in ("display", "Audio", "HTML", "Image", "Markdown", "clear_output"):
        setattr(module, name, lambda *_args, **_kwargs: None)


def notebook(module: ModuleType) -> None:
    """The package of `displays`; matplotlib asks it whether it runs."""
    module.get_ipython = lambda: None  # type: ignore[attr-defined]
    module.display = importlib.import_module("IPython.display")  # type: ignore[attr-defined]


def progress_bars(module: ModuleType) -> None:
    """Loops without their bars."""

    def bar(iterable: Iterable[Any] = (), *_args: Any, **_kwargs: Any) -> Iterable[Any]:
        return iterable

    module.tqdm = module.trange = module.tqdm_notebook = bar  # type: ignore[attr-defined]


# What counts


def every_layer(module: ModuleType) -> None:
    """Keep every model that is constructed: those that are never used count, too.

    And have layers of programs called without the arguments that Keras gave them by itself.
    """
    kind = module.Model
    init = module.Layer.__init__

    @functools.wraps(init)
    def initialize(self: Any, *args: Any, **kwargs: Any) -> None:
        init(self, *args, **kwargs)
        if isinstance(self, kind) and len(BUILT) < MOST_MODELS and not inside_sequential(sys._getframe(1)):
            BUILT.append(self)
        if missing := [
            one.name
            for one in self._call_signature.parameters.values()
            if one.name in ("training", "mask") and one.default is one.empty
        ]:
            self.call = with_nothing(self.call, missing)
            self._call_signature = inspect.signature(self.call)

    initialize.__signature__ = inspect.signature(init)  # type: ignore[attr-defined]
    module.Layer.__init__ = initialize


def with_nothing(call: Callable[..., Any], names: Sequence[str]) -> Callable[..., Any]:
    """The function, with ``None`` for some of its parameters where nothing is passed."""
    signature = inspect.signature(call)

    @functools.wraps(call)
    def complete(*args: Any, **kwargs: Any) -> Any:
        given = signature.bind_partial(*args, **kwargs).arguments
        return call(*args, **kwargs, **{name: None for name in names if name not in given})

    nothing = {name: signature.parameters[name].replace(default=None) for name in names}
    rest = [one for one in signature.parameters.values() if one.name not in names]
    at = next(
        (i for i, one in enumerate(rest) if one.default is not one.empty or one.kind > one.KEYWORD_ONLY),
        len(rest),
    )
    rest[at:at] = nothing.values()
    complete.__signature__ = signature.replace(parameters=rest)  # type: ignore[attr-defined]
    return complete


def inside_sequential(frame: FrameType) -> bool:
    """Whether Keras makes the model for a `Sequential`, as it does anew for each layer that is added."""
    caller = frame.f_back
    while caller is not None and caller.f_code.co_name in ("__init__", "initialize"):
        caller = caller.f_back
    return (
        caller is not None and caller.f_code.co_name == "build" and "sequential" in caller.f_code.co_filename
    )


BUILT: list[Any] = []
MOST_MODELS = 64


def count_built_models() -> None:
    """Have the engine keep the models that were only built, and neither weights nor tests of any."""
    from guider_engine.capture import models, record

    models.MOST = MOST_MODELS
    ordered = models.Models.ordered

    def with_built(self: models.Models) -> list[models.Seen]:
        for model in BUILT:
            self.see(model).called = True
        return ordered(self)

    models.Models.ordered = with_built  # type: ignore[method-assign]
    record._save = lambda *_arguments: False
    record._tests = lambda *_arguments: ("", "", None)


MNIST = images((28, 28), 10, False, 60_000, 10_000)
AFTER: dict[str, Callable[[ModuleType], None]] = {
    "keras.src.layers": layers,
    "keras.layers": old_layer_names,
    "keras._tf_keras.keras.layers": old_layer_names,
    "tensorflow.keras.layers": old_layer_names,
    "keras.src.layers.core.input_layer": input_layer,
    "keras.src.utils.file_utils": get_file,
    "keras.src.utils.model_visualization": no_picture,
    "keras.src.datasets.mnist": data_set(load_data=MNIST),
    "keras.src.datasets.fashion_mnist": data_set(load_data=MNIST),
    "keras.src.datasets.cifar10": data_set(load_data=images((32, 32, 3), 10, True, 50_000, 10_000)),
    "keras.src.datasets.cifar100": data_set(load_data=images((32, 32, 3), 100, True, 50_000, 10_000)),
    "keras.src.datasets.imdb": data_set(load_data=texts(2, 25_000, 25_000), get_word_index=word_index),
    "keras.src.datasets.reuters": data_set(load_data=texts(46, 8_982, 2_246), get_word_index=word_index),
    "keras.src.datasets.boston_housing": data_set(load_data=numbers(13)),
    "keras.src.datasets.california_housing": data_set(load_data=numbers(8)),
    "keras.src.models.model": every_layer,
    "keras.backend": backend,
    "keras.losses": lower_case,
    "keras._tf_keras.keras.losses": lower_case,
    "tensorflow.keras.losses": lower_case,
    "keras.src.backend.tensorflow.trainer": trainer,
    "keras.src.trainers.trainer": training,
    "keras.wrappers": scikit_learn,
    "numpy": numpy,
    "pandas": pandas,
    "sklearn.datasets": scikit_data,
    "IPython": notebook,
    "IPython.display": displays,
    "seaborn": iris,
    "tensorflow": old_tensorflow,
    "matplotlib.pyplot": pictures,
    "tqdm": progress_bars,
}


def after(name: str) -> Callable[[ModuleType], None] | None:
    """What to do to a module once it was executed."""
    if name.startswith("keras.src.applications."):
        return application
    if name.startswith("keras.src.optimizers."):
        return optimizer
    return AFTER.get(name)


# Finding modules


class Unavailable:
    """Something of a package that is absent: may be named, not used."""

    def __init__(self, name: str) -> None:
        self._name = name

    def __getattr__(self, name: str) -> Unavailable:
        if name.startswith("__"):
            raise AttributeError(name)
        return Unavailable(f"{self._name}.{name}")

    def __call__(self, *_args: Any, **_kwargs: Any) -> Any:
        raise ModuleNotFoundError(f"{self._name} is not available here", name=self._name.split(".")[0])

    def __mro_entries__(self, _bases: tuple[Any, ...]) -> tuple[type[Any], ...]:
        return self()  # type: ignore[no-any-return]


class Loader(importlib.abc.Loader):
    """Makes a module out of a function that gives its names."""

    def __init__(self, find: Callable[[str], Any]) -> None:
        self._find = find

    def create_module(self, spec: importlib.machinery.ModuleSpec) -> None:
        del spec

    def exec_module(self, module: ModuleType) -> None:
        module.__getattr__ = self._find  # type: ignore[method-assign]
        module.__path__ = []
        if change := after(module.__name__):
            change(module)


class Finder(importlib.abc.MetaPathFinder):
    """Finds moved modules, and changes the others right after they were executed."""

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> importlib.machinery.ModuleSpec | None:
        if (places := moved(fullname)) is not None:
            return importlib.machinery.ModuleSpec(
                fullname, Loader(in_modules(fullname, places)), is_package=True
            )
        change = after(fullname)
        if change is None:
            return None
        for finder in sys.meta_path:
            if finder is self:
                continue
            spec = finder.find_spec(fullname, path, target)
            if spec is not None and spec.loader is not None:
                _execute_then(spec.loader, change)
                return spec
        return None


class AbsentFinder(importlib.abc.MetaPathFinder):
    """Finds packages that are not there; asked last."""

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> importlib.machinery.ModuleSpec | None:
        del path, target
        package = fullname.partition(".")[0]
        if package not in ABSENT and package != "tqdm":
            return None

        def find(name: str) -> Any:
            if name.startswith("__"):
                raise AttributeError(name)
            return Unavailable(f"{fullname}.{name}")

        return importlib.machinery.ModuleSpec(fullname, Loader(find), is_package=True)


def moved(name: str) -> tuple[str, ...] | None:
    """The modules that have the names of an old one."""
    inner = name.removeprefix("tensorflow.python.keras.")
    if inner != name and inner.partition(".")[0] in MOVED_OUT_OF_TENSORFLOW and not imported_by_tensorflow():
        return MOVED.get(f"keras.{inner}")
    for prefix in PREFIXES:
        rest = name.removeprefix(f"{prefix}.")
        if rest != name:
            places = MOVED.get(f"keras.{rest}")
            return None if places is None or name in places else places
    return None


def imported_by_tensorflow() -> bool:
    """Whether TensorFlow itself is what imports."""
    frame = sys._getframe(1)
    while frame.f_back is not None and (
        frame.f_code.co_filename.startswith("<frozen importlib") or frame.f_code.co_filename == __file__
    ):
        frame = frame.f_back
    return f"{os.sep}tensorflow{os.sep}" in frame.f_code.co_filename


def in_modules(old: str, places: tuple[str, ...]) -> Callable[[str], Any]:
    """Looks names up in several modules."""

    def find(name: str) -> Any:
        if not name.startswith("__"):
            for place in places:
                module = importlib.import_module(place)
                if hasattr(module, name):
                    return getattr(module, name)
        raise AttributeError(f"module {old!r} has no attribute {name!r}")

    return find


def _execute_then(loader: Any, change: Callable[[ModuleType], None]) -> None:
    execute = loader.exec_module

    def exec_module(module: ModuleType) -> None:
        execute(module)
        change(module)

    loader.exec_module = exec_module


# The process


def limit(cpu_seconds: float, megabytes: float) -> None:
    """Have `UsedUp` raised in the program when it has used that much."""
    import resource  # not on Windows

    most = int(cpu_seconds * 1.5) + 30  # where the program does not come back to Python
    resource.setrlimit(resource.RLIMIT_CPU, (most, most))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    main = threading.get_ident()
    said: list[str] = []

    def stop(_number: int, _frame: Any) -> None:
        raise UsedUp(said[-1] if said else "stopped")

    signal.signal(signal.SIGUSR1, stop)

    def watch() -> None:
        while not said:
            time.sleep(0.5)
            pages = int(Path("/proc/self/statm").read_text().split()[1])
            used = pages * resource.getpagesize() / 2**20
            if used > megabytes:
                said.append(f"more than {megabytes:g} MB used")
            elif time.process_time() > cpu_seconds:
                said.append(f"more than {cpu_seconds:g} CPU seconds used")
        signal.pthread_kill(main, signal.SIGUSR1)

    threading.Thread(target=watch, daemon=True).start()


def main() -> None:
    """Serve as an engine does."""
    os.environ |= {
        "MPLBACKEND": "Agg",
        "TF_CPP_MIN_LOG_LEVEL": "2",
        "http_proxy": "http://127.0.0.1:9",
        "https_proxy": "http://127.0.0.1:9",
    }
    limit(float(os.environ["GUIDER_BENCH_CPU"]), float(os.environ["GUIDER_BENCH_MEMORY"]))
    time.clock = time.perf_counter  # type: ignore[attr-defined]
    sys.meta_path.insert(0, Finder())
    sys.meta_path.append(AbsentFinder())
    spec = importlib.util.spec_from_file_location("engine_entry", ENTRY)
    assert spec is not None
    assert spec.loader is not None
    entry = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(entry)
    incoming, outgoing = entry.take_channel()
    entry.load_package()
    count_built_models()
    from guider_engine import channel

    channel.serve(incoming, outgoing, channel.new_session)


if __name__ == "__main__":
    main()
