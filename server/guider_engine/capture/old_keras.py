"""What older versions of Keras had, and what it is called now.

Each entry was made from a program that failed. ``kept`` says that Keras 2, as the package ``tf_keras`` has it, runs the
old spelling.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace


@dataclass(frozen=True, slots=True)
class Spelling:
    """What became of an old spelling."""

    now: str
    """Its name today; empty: there is none."""
    advice: str
    kept: bool


def _now(name: str, advice: str = "", *, kept: bool = False) -> Spelling:
    return Spelling(name, advice, kept)


def _gone(advice: str, *, kept: bool = False) -> Spelling:
    return Spelling("", advice, kept)


def _each(prefix: str, names: str, spelling: Spelling) -> dict[str, Spelling]:
    return {prefix + name: replace(spelling, now=spelling.now.format(name=name)) for name in names.split()}


_LAYERS = _gone("its layers are in keras.layers", kept=True)
_MODES = _gone("keras.layers has add, multiply, average, maximum, concatenate and dot, one for each mode")
_ENGINE = _gone("Layer, Input and InputSpec are in keras.layers, Model is in keras.models", kept=True)
_OPTIMIZERS = _gone("the optimizers are in keras.optimizers")

MODULES: Mapping[str, Spelling] = {
    **_each(
        "layers.",
        "core convolutional convolutional_recurrent pooling recurrent recurrent_v2 normalization embeddings merge "
        "noise wrappers local advanced_activations experimental",
        _LAYERS,
    ),
    "utils.np_utils": _now("keras.utils", "it has to_categorical and normalize", kept=True),
    "utils.vis_utils": _now("keras.utils", "it has plot_model", kept=True),
    "utils.visualize_util": _gone("plot is keras.utils.plot_model now"),
    "utils.data_utils": _now("keras.utils", "it has get_file and Sequence", kept=True),
    "utils.generic_utils": _gone("Progbar is in keras.utils, get_custom_objects in keras.saving"),
    "utils.conv_utils": _gone("it was Keras' own; write what you need of it yourself", kept=True),
    "utils.layer_utils": _gone("models and layers have the methods count_params and summary", kept=True),
    "utils.io_utils": _gone("read HDF5 files with h5py"),
    "utils.training_utils": _gone("tf.distribute.MirroredStrategy trains on several GPUs"),
    "wrappers": _gone("scikit-learn's interface is in the package scikeras"),
    "preprocessing.text": _now("tensorflow.keras.preprocessing.text", kept=True),
    "initializers.initializers_v1": _now("keras.initializers", kept=True),
    "engine": _ENGINE,
    "legacy.interfaces": _gone("it translated Keras 1 to Keras 2; say it in today's words"),
    "objectives": _now("keras.losses", kept=True),
    "optimizer_v2": _OPTIMIZERS,
    "optimizer_v1": _OPTIMIZERS,
    "callbacks.callbacks": _now("keras.callbacks", kept=True),
    "backend.tensorflow_backend": _now("keras.ops", "sessions are gone"),
}
"""Modules below ``keras``."""

PACKAGES: Mapping[str, Spelling] = {
    "keras_applications": _now("keras.applications"),
    "keras_preprocessing": _now("tensorflow.keras.preprocessing"),
    "tensorflow.contrib": _gone("much of it is in Keras: keras.layers, keras.losses, keras.metrics"),
    "tensorflow.examples": _gone("keras.datasets.mnist.load_data() gives MNIST"),
}
"""Other modules, by their whole names."""

_BY_HAND = _gone("write it as a layer of your own, a class with a method call")
_SESSIONS = _gone("TensorFlow runs without sessions since version 2; leave it out")

NAMES: Mapping[str, Spelling] = {
    "layers.merge": _MODES,
    "layers.Merge": _MODES,
    "layers.CuDNNLSTM": _now("keras.layers.LSTM", "it uses cuDNN by itself"),
    "layers.CuDNNGRU": _now("keras.layers.GRU", "it uses cuDNN by itself"),
    "layers.Deconvolution2D": _now("keras.layers.Conv2DTranspose"),
    "layers.AtrousConvolution1D": _gone("use Conv1D with dilation_rate="),
    "layers.AtrousConvolution2D": _gone("use Conv2D with dilation_rate="),
    "layers.ConvRecurrent2D": _now("keras.layers.ConvLSTM2D"),
    "layers.TimeDistributedDense": _gone("use TimeDistributed(Dense(…))"),
    "layers.Recurrent": _now("keras.layers.RNN"),
    "layers.MaxoutDense": _BY_HAND,
    "layers.Highway": _BY_HAND,
    "layers.LocallyConnected1D": replace(_BY_HAND, kept=True),
    "layers.LocallyConnected2D": replace(_BY_HAND, kept=True),
    "layers.ThresholdedReLU": _gone("use ReLU(threshold=…)", kept=True),
    "layers.DenseFeatures": _gone("use keras.utils.FeatureSpace", kept=True),
    "layers.experimental": _now("keras.layers", kept=True),
    "utils.np_utils": _now("keras.utils", "it has to_categorical and normalize", kept=True),
    "utils.vis_utils": _now("keras.utils", "it has plot_model", kept=True),
    "utils.conv_utils": MODULES["utils.conv_utils"],
    "utils.generic_utils": MODULES["utils.generic_utils"],
    "utils.layer_utils": MODULES["utils.layer_utils"],
    "utils.data_utils": MODULES["utils.data_utils"],
    "utils.multi_gpu_model": _gone("tf.distribute.MirroredStrategy trains on several GPUs"),
    "utils.HDF5Matrix": _gone("read HDF5 files with h5py"),
    "utils.print_summary": _gone("use model.summary()"),
    **_each(
        "preprocessing.image.",
        "ImageDataGenerator Iterator DirectoryIterator NumpyArrayIterator apply_affine_transform "
        "apply_brightness_shift apply_channel_shift random_brightness random_channel_shift random_rotation "
        "random_shear random_shift random_zoom",
        _now("tensorflow.keras.preprocessing.image.{name}", kept=True),
    ),
    **_each(
        "preprocessing.sequence.",
        "TimeseriesGenerator make_sampling_table skipgrams",
        _now("tensorflow.keras.preprocessing.sequence.{name}", kept=True),
    ),
    "preprocessing.text": _now("tensorflow.keras.preprocessing.text", kept=True),
    "models.Input": _now("keras.Input"),
    "models.load_weights": _gone("models have the method load_weights"),
    "models.Graph": _now("keras.Model"),
    "initializations": _now("keras.initializers"),
    "objectives": _now("keras.losses", kept=True),
    "initializers.normal": _now("keras.initializers.RandomNormal"),
    "initializers.uniform": _now("keras.initializers.RandomUniform"),
    "initializers.one": _now("keras.initializers.Ones"),
    "initializers.zero": _now("keras.initializers.Zeros"),
    "legacy.interfaces": MODULES["legacy.interfaces"],
    "optimizers.experimental": _now("keras.optimizers", kept=True),
    "optimizers.TFOptimizer": _OPTIMIZERS,
    **_each(
        "optimizers.",
        "adam_v2 adagrad_v2 adadelta_v2 adamax_v2 nadam_v2 rmsprop_v2 gradient_descent_v2",
        _OPTIMIZERS,
    ),
    **{
        f"optimizers.{name.lower()}": _now(f"keras.optimizers.{name}")
        for name in ("Adam", "SGD", "RMSprop", "Adagrad", "Adadelta", "Adamax", "Nadam")
    },
    "constraints.maxnorm": _now("keras.constraints.MaxNorm"),
    "constraints.nonneg": _now("keras.constraints.NonNeg"),
    "constraints.unitnorm": _now("keras.constraints.UnitNorm"),
    "regularizers.WeightRegularizer": _now("keras.regularizers.L1L2"),
    "regularizers.l1l2": _now("keras.regularizers.L1L2"),
    "regularizers.activity_l1": _now("keras.regularizers.L1", "it goes to activity_regularizer="),
    "regularizers.activity_l2": _now("keras.regularizers.L2", "it goes to activity_regularizer="),
    "losses.logcosh": _now("keras.losses.log_cosh", kept=True),
    "losses.kullback_leibler_divergence": _now("keras.losses.kl_divergence", kept=True),
    "losses.kld": _now("keras.losses.kl_divergence", kept=True),
    "losses.mse": _now("keras.losses.mean_squared_error", kept=True),
    "losses.mae": _now("keras.losses.mean_absolute_error", kept=True),
    "losses.mape": _now("keras.losses.mean_absolute_percentage_error", kept=True),
    "losses.msle": _now("keras.losses.mean_squared_logarithmic_error", kept=True),
    "losses.cosine_proximity": _now("keras.losses.cosine_similarity"),
    "losses.Reduction": _gone("say the reduction as text: 'sum', 'sum_over_batch_size' or None", kept=True),
    "metrics.cosine_proximity": _now("keras.metrics.CosineSimilarity"),
    "metrics.precision": _now("keras.metrics.Precision"),
    "metrics.recall": _now("keras.metrics.Recall"),
    "metrics.fmeasure": _now("keras.metrics.F1Score"),
    "experimental": _gone(
        "its schedules are in keras.optimizers.schedules; LinearModel is a Dense layer, SequenceFeatures became "
        "keras.utils.FeatureSpace",
        kept=True,
    ),
    "mixed_precision.experimental": _now("keras.mixed_precision", "set_policy is set_global_policy"),
    "estimator": _gone("train with model.fit"),
    "utils.experimental": _gone("give a tf.data.Dataset to fit", kept=True),
    "__internal__": _gone("it was Keras' own", kept=True),
}
"""What was imported from a module or looked up in it: by its name below ``keras``."""

_PHASE = _gone("layers are told by the argument training= of call", kept=True)

BACKEND: Mapping[str, Spelling] = {
    **_each(
        "",
        "abs all any arange argmax batch_normalization binary_crossentropy cast categorical_crossentropy clip "
        "concatenate cos cumprod cumsum dot elu equal exp expand_dims eye greater greater_equal hard_sigmoid less "
        "less_equal log max maximum mean min minimum ndim not_equal one_hot ones ones_like prod relu reshape round "
        "shape sigmoid sign sin softmax softplus softsign sparse_categorical_crossentropy sqrt square squeeze stack "
        "std stop_gradient sum tanh tile transpose var zeros zeros_like",
        _now("keras.ops.{name}", kept=True),
    ),
    "batch_dot": _now("keras.ops.einsum", "or keras.ops.matmul", kept=True),
    "batch_flatten": _now("keras.layers.Flatten", kept=True),
    "batch_get_value": _now("keras.ops.convert_to_numpy", "one variable at a time", kept=True),
    "batch_set_value": _gone("variables have the method assign", kept=True),
    "bias_add": _now("keras.ops.add", kept=True),
    "constant": _now("keras.ops.convert_to_tensor", kept=True),
    "conv1d": _now("keras.ops.conv", kept=True),
    "conv2d": _now("keras.ops.conv", kept=True),
    "conv3d": _now("keras.ops.conv", kept=True),
    "conv2d_transpose": _now("keras.ops.conv_transpose", kept=True),
    "count_params": _gone("use the size of the variable's shape", kept=True),
    "ctc_batch_cost": _now("keras.ops.ctc_loss", kept=True),
    "depthwise_conv2d": _now("keras.ops.depthwise_conv", kept=True),
    "dropout": _now("keras.random.dropout", kept=True),
    "eval": _now("keras.ops.convert_to_numpy", kept=True),
    "flatten": _now("keras.ops.ravel", kept=True),
    "function": _now("keras.Model", "keras.Model(inputs, outputs) computes the outputs", kept=True),
    "gather": _now("keras.ops.take", "with axis=0", kept=True),
    "get_value": _now("keras.ops.convert_to_numpy", kept=True),
    "gradients": _gone("use tf.GradientTape", kept=True),
    "dtype": _gone("tensors have the attribute dtype", kept=True),
    "get_session": _SESSIONS,
    "set_session": _SESSIONS,
    "image_dim_ordering": _now(
        "keras.config.image_data_format", "'th' is 'channels_first', 'tf' 'channels_last'"
    ),
    "set_image_dim_ordering": _now(
        "keras.config.set_image_data_format", "'th' is 'channels_first', 'tf' 'channels_last'"
    ),
    "in_test_phase": _PHASE,
    "in_train_phase": _PHASE,
    "int_shape": _gone("tensors have the attribute shape", kept=True),
    "get_variable_shape": _gone("variables have the attribute shape"),
    "l2_normalize": _now("keras.ops.normalize", kept=True),
    "learning_phase": _PHASE,
    "logsumexp": _now("keras.ops.logsumexp"),
    "manual_variable_initialization": _gone(
        "variables are initialized when they are made; leave it out", kept=True
    ),
    "map_fn": _now("keras.ops.map", kept=True),
    "moving_average_update": _gone("use variable.assign(…)", kept=True),
    "name_scope": _now("keras.name_scope", kept=True),
    "permute_dimensions": _now("keras.ops.transpose", kept=True),
    "placeholder": _now("keras.Input", kept=True),
    "pool2d": _now("keras.ops.max_pool", "or keras.ops.average_pool", kept=True),
    "pow": _now("keras.ops.power", kept=True),
    "print_tensor": _now("tf.print", kept=True),
    "random_bernoulli": _now("keras.random.binomial", kept=True),
    "random_binomial": _now("keras.random.binomial", kept=True),
    "random_normal": _now("keras.random.normal", kept=True),
    "random_normal_variable": _now("keras.Variable", "of keras.random.normal(…)", kept=True),
    "random_uniform": _now("keras.random.uniform", kept=True),
    "random_uniform_variable": _now("keras.Variable", "of keras.random.uniform(…)", kept=True),
    "repeat": _now("keras.layers.RepeatVector", kept=True),
    "repeat_elements": _now("keras.ops.repeat", kept=True),
    "reset_uids": _now("keras.utils.clear_session", kept=True),
    "resize_images": _now("keras.ops.image.resize", kept=True),
    "reverse": _now("keras.ops.flip", kept=True),
    "rnn": _now("keras.layers.RNN", kept=True),
    "separable_conv2d": _now("keras.ops.separable_conv", kept=True),
    "set_learning_phase": _PHASE,
    "set_value": _gone("variables have the method assign", kept=True),
    "spatial_2d_padding": _now("keras.ops.pad", kept=True),
    "switch": _now("keras.ops.where", kept=True),
    "temporal_padding": _now("keras.ops.pad", kept=True),
    "tf": _gone("import tensorflow as tf"),
    "truncated_normal": _now("keras.random.truncated_normal", kept=True),
    "update": _gone("variables have the method assign", kept=True),
    "update_add": _gone("variables have the method assign_add", kept=True),
    "update_sub": _gone("variables have the method assign_sub", kept=True),
    "variable": _now("keras.Variable", kept=True),
}
"""Functions of ``keras.backend``."""

TENSORFLOW: Mapping[str, Spelling] = {
    **_each(
        "",
        "GraphDef InteractiveSession Print Session Summary app arg_max disable_eager_execution disable_v2_behavior "
        "enable_eager_execution get_default_graph get_variable layers placeholder py_func reset_default_graph "
        "sparse_placeholder trainable_variables variable_scope",
        _now("tf.compat.v1.{name}"),
    ),
    **_each(
        "train.",
        "AdagradOptimizer AdamOptimizer GradientDescentOptimizer MomentumOptimizer RMSPropOptimizer Saver",
        _now("tf.compat.v1.train.{name}"),
    ),
    "summary.FileWriter": _now("tf.summary.create_file_writer"),
    "ConfigProto": _now("tf.compat.v1.ConfigProto", "tf.config sets the devices"),
    "GPUOptions": _now("tf.compat.v1.GPUOptions", "tf.config sets the devices"),
    "assign": _gone("variables have the method assign"),
    "ceil": _now("tf.math.ceil"),
    "contrib": PACKAGES["tensorflow.contrib"],
    "diag": _now("tf.linalg.diag"),
    "div": _now("tf.divide"),
    "estimator": _gone("train with model.fit"),
    "flags": _now("tf.compat.v1.flags", "or argparse"),
    "floor_div": _now("tf.math.floordiv"),
    "gfile": _now("tf.io.gfile"),
    "global_variables_initializer": _gone("variables are initialized when they are made; leave it out"),
    "image.resize_bilinear": _now("tf.image.resize"),
    "image.resize_images": _now("tf.image.resize"),
    "initialize_all_variables": _gone("variables are initialized when they are made; leave it out"),
    "is_nan": _now("tf.math.is_nan"),
    "lin_space": _now("tf.linspace"),
    "log": _now("tf.math.log"),
    "logging": _now("tf.get_logger"),
    "matrix_inverse": _now("tf.linalg.inv"),
    "mul": _now("tf.multiply"),
    "nn.softmax_cross_entropy_with_logits_v2": _now("tf.nn.softmax_cross_entropy_with_logits"),
    "random_normal": _now("tf.random.normal"),
    "random_uniform": _now("tf.random.uniform"),
    "set_random_seed": _now("tf.random.set_seed"),
    "space_to_depth": _now("tf.nn.space_to_depth"),
    "string_split": _now("tf.strings.split"),
    "sub": _now("tf.subtract"),
    "to_float": _now("tf.cast"),
    "truncated_normal": _now("tf.random.truncated_normal"),
}
"""What TensorFlow 1 had at its top."""

_ORDER = "'th' is 'channels_first', 'tf' is 'channels_last'"
_SIZE = _now("kernel_size=", "with rows and columns as one tuple")
_FIRST = _gone("begin the model with keras.Input(batch_shape=…)", kept=True)

LAYER_ARGUMENTS: Mapping[str, Spelling] = {
    "init": _now("kernel_initializer="),
    "Embedding.init": _now("embeddings_initializer="),
    "PReLU.init": _now("alpha_initializer="),
    "inner_init": _now("recurrent_initializer="),
    "forget_bias_init": _gone("use unit_forget_bias="),
    "gamma_init": _now("gamma_initializer="),
    "beta_init": _now("beta_initializer="),
    "W_regularizer": _now("kernel_regularizer="),
    "U_regularizer": _now("recurrent_regularizer="),
    "b_regularizer": _now("bias_regularizer="),
    "W_constraint": _now("kernel_constraint="),
    "U_constraint": _now("recurrent_constraint="),
    "b_constraint": _now("bias_constraint="),
    "bias": _now("use_bias="),
    "output_dim": _now("units="),
    "nb_filter": _now("filters="),
    "nb_row": _SIZE,
    "nb_col": _SIZE,
    "filter_length": _now("kernel_size="),
    "border_mode": _now("padding="),
    "subsample": _now("strides="),
    "subsample_length": _now("strides="),
    "pool_length": _now("pool_size="),
    "stride": _now("strides="),
    "dim_ordering": _now("data_format=", _ORDER),
    "inner_activation": _now("recurrent_activation="),
    "dropout_W": _now("dropout="),
    "dropout_U": _now("recurrent_dropout="),
    "Embedding.dropout": _gone("put a layer SpatialDropout1D after it"),
    "consume_less": _gone("leave it out"),
    "p": _now("rate="),
    "sigma": _now("stddev="),
    "dims": _now("target_shape="),
    "length": _now("size="),
    "input_length": _gone("leave it out", kept=True),
    "batch_input_shape": _FIRST,
    "weights": _gone(
        "use embeddings_initializer=keras.initializers.Constant(…), or set_weights once the model is built",
        kept=True,
    ),
    "BatchNormalization.mode": _gone("leave it out"),
    **{f"{name}.mode": _MODES for name in ("Add", "Average", "Concatenate", "Dot", "Maximum", "Multiply")},
    "fused": _gone("leave it out", kept=True),
    "renorm": _gone("leave it out", kept=True),
    "virtual_batch_size": _gone("leave it out", kept=True),
    "dynamic": _gone("compile with run_eagerly=True", kept=True),
    "time_major": _gone("transpose the data instead", kept=True),
    "max_tokens": _now("num_tokens=", kept=True),
    "Conv2DTranspose.output_shape": _gone("use padding= and output_padding="),
    "Model.input": _now("inputs="),
    "Model.output": _now("outputs="),
}
"""Arguments of layers and models; where a class is named, of that alone."""

OPTIMIZER_ARGUMENTS: Mapping[str, Spelling] = {
    "lr": _now("learning_rate=", kept=True),
    "decay": _gone(
        "pass a schedule: learning_rate=keras.optimizers.schedules.InverseTimeDecay(…)", kept=True
    ),
    "schedule_decay": _gone("leave it out", kept=True),
}

_DATA = _gone("the keras.utils.PyDataset that makes the data takes it")

FUNCTION_ARGUMENTS: Mapping[str, Spelling] = {
    "nb_epoch": _now("epochs="),
    "samples_per_epoch": _now("steps_per_epoch=", "it counts batches"),
    "nb_val_samples": _now("validation_steps=", "it counts batches"),
    "val_samples": _now("steps=", "it counts batches"),
    "nb_words": _now("num_words="),
    "show_accuracy": _gone("compile with metrics=['accuracy']"),
    "class_mode": _gone("leave it out"),
    "options": _gone("leave it out"),
    "accuracy": _gone("compile with metrics=['accuracy']"),
    "workers": replace(_DATA, kept=True),
    "use_multiprocessing": replace(_DATA, kept=True),
    "max_queue_size": replace(_DATA, kept=True),
    "max_q_size": _DATA,
    "pickle_safe": _DATA,
    "nb_worker": _DATA,
    "target_tensors": _gone("leave it out", kept=True),
    "sample_weight_mode": _gone("leave it out", kept=True),
    "experimental_run_tf_function": _gone("leave it out", kept=True),
    "reset_metrics": _gone("call model.reset_metrics()", kept=True),
    "ModelCheckpoint.period": _now("save_freq=", "it takes 'epoch' or a number of batches", kept=True),
    "TensorBoard.batch_size": _gone("leave it out", kept=True),
    "TensorBoard.write_grads": _gone("leave it out", kept=True),
    "Input.batch_input_shape": _now("batch_shape=", kept=True),
}
"""Arguments of functions, methods and callbacks; where one is named, of that alone."""

_UPDATES = _gone("a layer updates its variables itself, with variable.assign(…)", kept=True)
_TRAINER = _gone("override train_step of the model")

ATTRIBUTES: Mapping[str, Spelling] = {
    "fit_generator": _now("fit", "it takes generators", kept=True),
    "evaluate_generator": _now("evaluate", "it takes generators", kept=True),
    "predict_generator": _now("predict", "it takes generators", kept=True),
    "predict_classes": _gone(
        "use numpy.argmax(model.predict(x), axis=-1), for a single unit model.predict(x) > 0.5"
    ),
    "predict_proba": _now("predict"),
    "input_shape": _gone("use layer.input.shape", kept=True),
    "output_shape": _gone("use layer.output.shape", kept=True),
    "get_input_at": _now("input", kept=True),
    "get_output_at": _now("output", kept=True),
    "get_input_shape_at": _gone("use layer.input.shape", kept=True),
    "get_output_shape_at": _gone("use layer.output.shape", kept=True),
    "inbound_nodes": _now("_inbound_nodes", kept=True),
    "outbound_nodes": _now("_outbound_nodes", kept=True),
    "input_mask": _gone("masks go to the argument mask of call", kept=True),
    "output_mask": _gone("masks go to the argument mask of call", kept=True),
    "updates": _UPDATES,
    "state_updates": _UPDATES,
    "add_update": _UPDATES,
    "add_metric": _gone("pass metrics to compile", kept=True),
    "reset_states": _gone("call reset_state() of each recurrent layer", kept=True),
    "to_yaml": _now("to_json"),
    "total_loss": _TRAINER,
    "targets": _TRAINER,
    "sample_weights": _TRAINER,
    "metrics_tensors": _TRAINER,
    "_make_train_function": _TRAINER,
    "container_nodes": _gone("it was Keras' own"),
    "validation_data": _gone("give the data to the callback yourself"),
    "W": _now("kernel"),
    "b": _now("bias"),
    "lr": _now("learning_rate", kept=True),
    "get_updates": _now("apply_gradients"),
    "get_weights": _now("variables"),
    "decay": _gone("pass a schedule as the learning rate: keras.optimizers.schedules.InverseTimeDecay(…)"),
    "get_shape": _now("shape", kept=True),
    "_keras_shape": _now("shape"),
    "make_one_shot_iterator": _gone("go through the data set itself: for x, y in dataset"),
    "output_shapes": _now("element_spec"),
    "output_types": _now("element_spec"),
}
"""Attributes of the objects of Keras and TensorFlow."""

_NOTED = _gone("leave it out, add_weight notes the variables by itself")
_REWIRED = _gone("make a new model instead, keras.Model(inputs, outputs)", kept=True)

ASSIGNMENTS: Mapping[str, Spelling] = {
    "trainable_weights": _NOTED,
    "non_trainable_weights": _NOTED,
    "inputs": _REWIRED,
    "outputs": _REWIRED,
}
"""Attributes of Keras' objects that could be set."""

HISTORY: Mapping[str, tuple[str, ...]] = {
    "acc": ("accuracy", "binary_accuracy", "categorical_accuracy", "sparse_categorical_accuracy"),
    "lr": ("learning_rate",),
    "mean_squared_error": ("mse",),
    "mean_absolute_error": ("mae",),
    "mean_absolute_percentage_error": ("mape",),
    "mse": ("mean_squared_error",),
    "mae": ("mean_absolute_error",),
}
"""Keys of a history, which may begin with ``val_``."""

_KERAS_TENSOR = (
    "passes a tensor of a Keras model under construction to a function of TensorFlow, which {keras} does not allow: "
    "use the function of that name in keras.ops, or put the call into a layer (keras.layers.Lambda)"
)
_ADD_WEIGHT = (
    "calls add_weight with the name first, which {keras} takes by keyword: add_weight(shape=…, name='{0}')"
)

MESSAGES: tuple[tuple[str, str, bool], ...] = (
    (
        r"^Cannot convert '(\d+)' to a shape",
        "gives the shape as the number {0}, which {keras} takes as a tuple: shape=({0},)",
        True,
    ),
    (
        r"^Argument `learning_rate` should be float.*learning_rate=(-?\d+)$",
        "gives the learning rate as a whole number, which {keras} does not take: learning_rate={0}.0",
        True,
    ),
    (
        r"`keras\.optimizers\.legacy` is not supported",
        "uses keras.optimizers.legacy, which {keras} does not have: its optimizers are in keras.optimizers",
        True,
    ),
    (r"^`name` must be passed as a keyword argument\. Received: add_weight\('([^']*)'", _ADD_WEIGHT, True),
    (r"^Could not interpret initializer identifier: \(\d*,", _ADD_WEIGHT.replace("{0}", "…"), True),
    (
        r"^Layer `add_metric\(\)` method is deprecated",
        "uses add_metric, which {keras} does not have: pass metrics to compile",
        True,
    ),
    (
        r"^Received an invalid value for `(\w+)`, expected a positive integer\. Received: \w+=(\d+\.\d+)$",
        "passes {0}={1}, which {keras} takes as a whole number: int(…), or // instead of /",
        True,
    ),
    (
        r"cannot contain character `/`\. Received: name=(\S*/\S*) ",
        "gives the name '{0}', which {keras} does not take: leave out the /",
        True,
    ),
    (r"add_weight\(\) got multiple values for argument 'shape'", _ADD_WEIGHT.replace("{0}", "…"), True),
    (
        r"^Expected `metrics` argument to be a list.*metrics=(\w+) of type <class 'str'>",
        "passes metrics as text, which {keras} takes as a list: metrics=['{0}']",
        True,
    ),
    (
        r"^Could not interpret (?:loss|metric) identifier: logcosh",
        "uses 'logcosh', which {keras} calls 'log_cosh'",
        True,
    ),
    (
        r"^Could not interpret metric identifier: (precision|recall|fmeasure)$",
        "uses the metric '{0}', which {keras} has as a class: keras.metrics.Precision, Recall and F1Score",
        False,
    ),
    (
        r"^Invalid value for argument `reduction`\..*reduction=auto$",
        "passes reduction='auto', which {keras} does not have: leave it out",
        True,
    ),
    (
        r"^(?:Invalid filepath extension for saving|The `save_format` argument is deprecated in Keras 3)",
        "saves a model as a folder, which {keras} does not write: name a file that ends in .keras",
        True,
    ),
    (
        r"^The filename must end in `\.weights\.h5`",
        "saves weights to a file of another name than {keras} takes: it has to end in .weights.h5",
        True,
    ),
    (
        r"^When using `save_weights_only=True` in `ModelCheckpoint`",
        "names a file for weights that {keras} does not take: it has to end in .weights.h5",
        True,
    ),
    (
        r"^The filepath provided must end in `\.keras`",
        "names a file for checkpoints that {keras} does not take: it has to end in .keras",
        True,
    ),
    (
        r"legacy SavedModel format is not supported by `load_model\(\)`",
        "loads a model that was saved as a folder, which {keras} cannot load: keras.layers.TFSMLayer runs it, or save "
        "it again as .keras with the Keras that wrote it",
        False,
    ),
    (
        r"received monitor=(val_)?acc\b",
        "monitors '{0}acc', which {keras} calls '{0}accuracy'",
        False,
    ),
    (r"^A KerasTensor cannot be used as input to a TensorFlow function", _KERAS_TENSOR, True),
    (
        r"automatically infer the shape of the Lambda's output",
        "makes a Lambda whose output shape {keras} cannot tell: pass output_shape=",
        True,
    ),
    (
        r"has never been called and thus has no defined (input|output)",
        "asks for the {0} of a model or layer that was not called yet: begin the model with keras.Input(shape=…)",
        False,
    ),
    (
        r"^Unrecognized data type: x=\[",
        "passes a list as data, which {keras} does not take: make it an array, numpy.array(…)",
        False,
    ),
    (r"^'str' object has no attribute 'base_dtype'", _KERAS_TENSOR, True),
    (
        r"^tf\.placeholder\(\) is not compatible with eager execution",
        "uses tf.placeholder, which is of TensorFlow 1: use keras.Input",
        False,
    ),
)
"""What else Keras says: pattern, what the line does, and whether Keras 2 takes it."""
