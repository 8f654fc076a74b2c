"""The options of each command, with the help that a person reads."""

from __future__ import annotations

import argparse
import itertools
from collections.abc import Sequence
from typing import Any, NoReturn

from guider_engine.wire import AGGREGATIONS, FORMULAS, NEURONS, RECURRENT, TASK_CHOICES
from guider_ls import __version__
from guider_ls.errors import UsageError

_MAIN = """\
Finds the suspicious layers of a trained Keras model, and the lines of the
program that construct them.
"""
_COMMANDS = """\
start here:
  guider-ls localize --run train.py   run the program, rank the layers that it trains
  guider-ls localize train.py         rank those of the model that it saved
  guider-ls doctor train.py           what would be used: interpreter, model, test set

exit status: 0 done; 2 wrong usage; 3 the input cannot be used; 4 the
environment, the engine or your code failed; 130 interrupted
"""
_LOCALIZE = """\
Ranks the layers of a trained model by suspicion. Every test of the test set is
run through the model; a test passes if the model answers it rightly. A neuron
is the more suspicious the more failing and the fewer passing tests activate it,
a layer the more its neurons are.

With --run the program is run and watched: the model is the one that it trains,
the tests are what it evaluates it on, and each layer has the line that made it.

What no option says is taken from [tool.guider] in pyproject.toml. A model and a
test set that are not named there either are those of an earlier --run, while
the program and its data are unchanged; else those that the program itself says
it writes: model.save("..."), np.savez("...").
"""
_LOCALIZE_MORE = """\
formulas, from the failing and passing tests in which a neuron is active
(ef, ep) or not (nf, np):
  ochiai      ef / sqrt((ef + nf) (ef + ep)); the default
  tarantula   a / (a + b), where a = ef / (ef + nf), b = ep / (ep + np)
  dstar       ef^2 / (nf + ep); stresses what most failing tests activate
  op2         ef - ep / (ep + np + 1); failing tests first, then passing ones
  barinel     1 - ep / (ep + ef); how seldom a test passes with it active

aggregations, from the scores of a layer's neurons to its own:
  mean-gini   mean x (1 - Gini), the default: prefers layers whose neurons agree
  mean        the mean alone

examples:
  guider-ls localize --run train.py
  guider-ls localize --run train.py --epochs 3 -- --data small.csv
  guider-ls localize train.py
  guider-ls localize train.py --model model.keras --test-data test.npz
  guider-ls localize --model model.h5 --test-data x_test.npy y_test.npy
  guider-ls localize train.py --test-data package.data:load_test
  guider-ls localize train.py --test-data test.csv --label quality
  guider-ls localize --load package.net:restore
  guider-ls localize train.py --format sarif --output ranking.sarif

lines for pyproject.toml that say the same every time:
  [tool.guider]
  program = "train.py"
  model = "model.keras"
  test_data = "test.npz"
"""
_MAP = """\
Lists the layer constructions of a program and, with a model, the layers that
each of them made, with the reason.
"""
_DOCTOR = """\
Says what a localization would use and why: settings, program, model, test set,
interpreter and the packages in it. Loads model and test set and runs one test.
Exit status 0: a localization can run.
"""
_SERVE = """\
Runs the language server, which editors start themselves.
"""


def parse(arguments: Sequence[str]) -> argparse.Namespace:
    """Read the command line; ``--help`` and ``--version`` print and exit.

    Raises:
        UsageError: "usage".
    """
    own, of_program = _split(arguments)
    options = _parser().parse_args(own)
    if options.command == "localize":
        _check_run(options)
        options.program_arguments = of_program
    data = getattr(options, "test_data", None) or []
    if len(data) > 1 and options.program is None and data[-1].endswith((".py", ".ipynb")):
        options.program = data.pop()  # written last, it was taken for test data
    return options


def wanted_format(arguments: Sequence[str]) -> str:
    """What the reader at standard output waits for, also if the rest of the command line is wrong."""
    own, _ = _split(arguments)
    for name in ("json", "sarif"):
        if f"--format={name}" in own or ("--format", name) in itertools.pairwise(own):
            return name
    return "text"


def _split(arguments: Sequence[str]) -> tuple[list[str], list[str] | None]:
    """Our own arguments, and those of the program that is run, where a ``--`` begins them."""
    own = list(itertools.takewhile(lambda argument: argument != "--", arguments))
    if len(own) == len(arguments) or not any(a == "--run" or a.startswith("--run=") for a in own):
        return list(arguments), None
    return own, list(arguments[len(own) + 1 :])


def _check_run(options: argparse.Namespace) -> None:
    if options.run is None:
        for name in _OF_RUN:
            if getattr(options, name) is not None:
                option = f"--{name.replace('_', '-')}"
                raise UsageError(
                    "usage", f"{option} says how the program is run: name it with --run PROGRAM.py."
                )
    elif options.program is not None:
        raise UsageError(
            "usage", "With --run the program is named once: guider-ls localize --run PROGRAM.py."
        )
    elif options.run.endswith(".ipynb"):
        raise UsageError(
            "usage",
            f"{options.run} is a notebook, and only programs are run. Localize in the model that its cells save: "
            f"guider-ls localize {options.run} --model M --test-data D.",
        )
    else:
        options.program = options.run


class _Parser(argparse.ArgumentParser):
    def __init__(self, **options: Any) -> None:
        options.setdefault("formatter_class", argparse.RawDescriptionHelpFormatter)
        super().__init__(allow_abbrev=False, **options)

    def error(self, message: str) -> NoReturn:
        raise UsageError("usage", f"{message[:1].upper()}{message[1:]}. Try: {self.prog} --help")


def _parser() -> argparse.ArgumentParser:
    parser = _Parser(prog="guider-ls", description=_MAIN, epilog=_COMMANDS)
    parser.add_argument("--version", action="version", version=f"guider-ls {__version__}")
    commands = parser.add_subparsers(dest="command", metavar="COMMAND", required=True)

    localize = commands.add_parser(
        "localize",
        help="rank the layers of a model",
        usage="%(prog)s [PROGRAM.py] [OPTION ...]",
        description=_LOCALIZE,
        epilog=_LOCALIZE_MORE,
    )
    _inputs(localize)
    _run(localize)
    _judging(localize)
    _method(localize)
    _output(localize, "text", "json", "sarif")

    of_map = commands.add_parser("map", help="list a program's layers", description=_MAP)
    of_map.add_argument("program", metavar="PROGRAM.py", help="the program, or a notebook (.ipynb)")
    of_map.add_argument("--model", metavar="M", help="trained model: a file, a folder or module:function")
    _loading(of_map)
    _interpreter(of_map)
    _output(of_map, "text", "json")

    doctor = commands.add_parser(
        "doctor",
        help="say what a localization would use and why",
        usage="%(prog)s [PROGRAM.py] [OPTION ...]",
        description=_DOCTOR,
    )
    _inputs(doctor)
    _judging(doctor)
    _output(doctor, "text", "json")

    serve = commands.add_parser("serve", help="run the language server", description=_SERVE)
    how = serve.add_mutually_exclusive_group()
    how.add_argument("--stdio", action="store_true", help="over standard input and output (the default)")
    how.add_argument("--tcp", metavar="HOST:PORT", type=_address, help="wait for one editor at an address")
    return parser


def _inputs(parser: argparse.ArgumentParser) -> None:
    group = parser.add_argument_group("what to look at")
    group.add_argument(
        "program", metavar="PROGRAM.py", nargs="?", help="the program or the notebook that builds the model"
    )
    group.add_argument(
        "--model",
        metavar="M",
        help="trained model: .keras, .h5, a SavedModel's folder, weights (with --load), or module:function",
    )
    group.add_argument(
        "--test-data",
        metavar="D",
        nargs="+",
        help="test set: .npz, .csv, .tsv, .parquet or .h5, two .npy (inputs, labels), a folder of images by class or "
        "of a saved tf.data dataset, or module:function returning (inputs, labels)",
    )
    group.add_argument("--label", metavar="NAME", help="column or array that holds the labels")
    group.add_argument(
        "--image-scale",
        metavar="F",
        type=float,
        help="what the pixels of a folder of images are multiplied by",
    )
    group.add_argument(
        "--max-tests", metavar="N", type=int, help="most tests that are run, drawn by class; default: all"
    )
    _loading(group)
    group.add_argument("--target", metavar="NAME", help="take this one of [[tool.guider.targets]]")
    _interpreter(group)


_OF_RUN = ("epochs", "minutes", "legacy_keras", "fresh")


def _run(parser: argparse.ArgumentParser) -> None:
    group = parser.add_argument_group("running the program")
    group.add_argument(
        "--run",
        metavar="PROGRAM.py",
        help="run it here, as `python PROGRAM.py` would, and localize in what it trains; what follows -- are its "
        "arguments. If it holds several models, --model NAME says which. Neither the program nor what it "
        "read changed since the last time: that is used",
    )
    group.add_argument("--epochs", metavar="N", type=int, help="most epochs of each training")
    group.add_argument(
        "--minutes", metavar="M", type=float, help="stop it then, and use what was trained until then"
    )
    group.add_argument(
        "--legacy-keras", action="store_true", default=None, help="run it on tf_keras, which is Keras 2"
    )
    group.add_argument(
        "--fresh",
        action="store_true",
        default=None,
        help="run it, also if nothing changed since the last time",
    )


def _interpreter(parser: argparse._ActionsContainer) -> None:
    parser.add_argument(
        "--python",
        metavar="INTERPRETER",
        help="Python that has the project's TensorFlow: a path, an environment's folder or a command",
    )


def _loading(parser: argparse._ActionsContainer) -> None:
    parser.add_argument(
        "--load",
        metavar="MODULE:FUNCTION",
        help="function that returns the model, alone or with the tests: (model, inputs, labels)",
    )
    parser.add_argument(
        "--custom-objects",
        metavar="MODULE[:NAME]",
        help="classes and functions of your own that the model needs: a module that registers them, or a dictionary",
    )


def _judging(parser: argparse.ArgumentParser) -> None:
    group = parser.add_argument_group("when a test passes")
    group.add_argument(
        "--task",
        metavar="TASK",
        choices=TASK_CHOICES,
        help="what the model does: auto (the default: told by its loss, its output and the labels), "
        + ", ".join(TASK_CHOICES[1:]),
    )
    group.add_argument(
        "--tolerance",
        metavar="T",
        help="what a regression may be off: 0.001 (the default), 5%% of the target, or '0.1 iqr' of all targets",
    )
    group.add_argument(
        "--accuracy",
        metavar="A",
        type=float,
        help="share of a test's places or labels that must be right; default: 0.9 of the places, all labels",
    )
    group.add_argument(
        "--quantile",
        metavar="Q",
        type=float,
        help="share of the tests whose reconstruction counts as good (autoencoders), default: 0.9",
    )
    group.add_argument(
        "--oracle",
        metavar="MODULE:FUNCTION",
        help="function that judges: (inputs, labels, outputs) to passed",
    )


def _method(parser: argparse.ArgumentParser) -> None:
    group = parser.add_argument_group("how to rank")
    group.add_argument("--method", choices=["guider"], default="guider", help="default: guider")
    group.add_argument("--formula", choices=FORMULAS, help="score of a neuron, default: ochiai")
    group.add_argument("--aggregation", choices=AGGREGATIONS, help="score of a layer, default: mean-gini")
    group.add_argument(
        "--threshold",
        metavar="T",
        type=float,
        help="a neuron is active if its output is above T, default: 0.1",
    )
    group.add_argument(
        "--neurons-per-layer",
        metavar="N",
        type=_neurons,
        help='neurons to draw from a layer that has more, or "all"; default: 200',
    )
    group.add_argument(
        "--neuron",
        choices=NEURONS,
        help="what counts as one: each output of a layer (unit, the default), or the mean of a channel",
    )
    group.add_argument(
        "--recurrent",
        choices=RECURRENT,
        help="which steps of a layer that puts out a sequence count: all (the default), the last, or the maximum",
    )
    group.add_argument(
        "--seed", metavar="S", type=int, help="of the drawing of neurons and of tests, default: 7"
    )
    weights = group.add_mutually_exclusive_group()
    weights.add_argument(
        "--weighted",
        dest="weighted",
        action="store_true",
        default=None,
        help="tests weigh more the more confident the model is (the default)",
    )
    weights.add_argument(
        "--unweighted", dest="weighted", action="store_false", help="every test weighs the same"
    )


def _output(parser: argparse.ArgumentParser, *formats: str) -> None:
    group = parser.add_argument_group("output")
    group.add_argument("--format", choices=formats, default="text", help="default: text")
    group.add_argument("--output", metavar="FILE", help="write there instead of to standard output")
    group.add_argument(
        "--color",
        choices=["auto", "always", "never"],
        default="auto",
        help="default: auto, at a terminal and without NO_COLOR",
    )


def _neurons(text: str) -> int | str:
    if text == "all":
        return text
    try:
        return int(text)
    except ValueError:
        raise argparse.ArgumentTypeError(f"{text!r} is neither a whole number nor 'all'") from None


def _address(text: str) -> tuple[str, int]:
    host, _, port = text.rpartition(":")
    if not host or not port.isdecimal() or int(port) > 65535:
        raise argparse.ArgumentTypeError(f"{text!r} is not of the form HOST:PORT, such as 127.0.0.1:2087")
    return host.strip("[]"), int(port)
