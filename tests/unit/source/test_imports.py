"""Modules of the project that a program imports: run once, their constructions are sites of their own file."""

from __future__ import annotations

import pytest

from guider_ls.source.read import read_program
from guider_ls.source.sites import SourceMap, Unknown

K = "import keras\nfrom keras import layers\n"


class Folder:
    """Modules of a project by path, ``pkg/nets.py``; the program stands at the top."""

    def __init__(self, files: dict[str, str]) -> None:
        self.files = files
        self.asked: list[tuple[str, int, str]] = []

    def find(self, name: str, level: int, importer: str) -> tuple[str, str] | None:
        self.asked.append((name, level, importer))
        folder = importer.split("/")[:-level] if level else []
        stem = "/".join([*folder, *filter(None, name.split("."))])
        for path in (f"{stem}/__init__.py".lstrip("/"), f"{stem}.py"):
            if path in self.files:
                return path, self.files[path]
        return None


def read(program: str, **files: str) -> SourceMap:
    return read_program(program, Folder({name.replace("__in__", "/"): text for name, text in files.items()}))


def steps(source: SourceMap) -> list[list[str]]:
    """Constructions as ``file:line class``."""
    sites = source.sites
    return [
        [f"{sites[s.site].file}:{sites[s.site].span.line + 1} {sites[s.site].class_name}" for s in one.steps]
        for one in source.outlines
    ]


BUILD = K + "def build(n=2):\n  return keras.Sequential([layers.Dense(n)])\n"
WAYS = {
    "module": "import models\nm = models.build()",
    "module under another name": "import models as z\nm = z.build()",
    "function": "from models import build\nm = build()",
    "function under another name": "from models import build as b\nm = b()",
    "star": "from models import *\nm = build()",
    "inside a function": "def f():\n  from models import build\n  return build()\nm = f()",
    "relative": "from .models import build\nm = build()",
    "from the package": "from . import models\nm = models.build()",
    "tried": "try:\n  from models import build\nexcept ImportError:\n  from .models import build\nm = build()",
    "by importlib": "import importlib, keras\nm = importlib.import_module('models').build()",
    "by getattr": "import models\nm = getattr(models, 'build')()",
    "by an unknown name": "import models, sys\nm = getattr(models, sys.argv[1])()",
    "never called by itself": "from models import build\ndef main():\n  return build()",
}


@pytest.mark.parametrize("program", WAYS.values(), ids=WAYS.keys())
def test_ways_to_import(program: str) -> None:
    source = read_program(program, Folder({"models.py": BUILD}))
    assert steps(source) == [["models.py:4 Dense"]]
    assert source.modules == ("models.py",)


PACKAGES: dict[str, tuple[str, dict[str, str]]] = {
    "module of a package": ("import pkg.nets\nm = pkg.nets.build()", {"pkg/nets.py": BUILD}),
    "module of a package under another name": (
        "import pkg.nets as n\nm = n.build()",
        {"pkg/nets.py": BUILD, "pkg/__init__.py": ""},
    ),
    "from a package": ("from pkg import nets\nm = nets.build()", {"pkg/nets.py": BUILD}),
    "two folders": ("import a.b.nets\nm = a.b.nets.build()", {"a/b/nets.py": BUILD, "a/__init__.py": ""}),
    "handed on": (
        "from pkg import build\nm = build()",
        {"pkg/__init__.py": "from .nets import build", "pkg/nets.py": BUILD},
    ),
    "handed on by a star": (
        "import pkg\nm = pkg.build()",
        {"pkg/__init__.py": "from .nets import *", "pkg/nets.py": BUILD},
    ),
    "bound by the package itself": (
        "import pkg\nm = pkg.nets.build()",
        {"pkg/__init__.py": "from . import nets", "pkg/nets.py": BUILD},
    ),
    "bound because it was imported": (
        "import pkg\nm = pkg.nets.build()",
        {"pkg/__init__.py": "from .nets import build as b", "pkg/nets.py": BUILD},
    ),
    "the package above": (
        "import pkg.sub.run\nm = pkg.sub.run.build()",
        {"pkg/sub/run.py": "from ..nets import build", "pkg/nets.py": BUILD},
    ),
    "the package above, as a whole": (
        "import pkg.sub.run\nm = pkg.sub.run.m",
        {"pkg/sub/run.py": "from .. import nets\nm = nets.build()", "pkg/nets.py": BUILD},
    ),
    "listed names only": (
        "from pkg.nets import *\nm = build()",
        {"pkg/nets.py": BUILD + "__all__ = ['build']\ndef other(): pass"},
    ),
}


@pytest.mark.parametrize(("program", "files"), PACKAGES.values(), ids=PACKAGES.keys())
def test_packages(program: str, files: dict[str, str]) -> None:
    assert steps(read_program(program, Folder(files))) == [
        ["pkg/nets.py:4 Dense" if "pkg/nets.py" in files else "a/b/nets.py:4 Dense"]
    ]


def test_the_sites_of_a_module_have_its_file_and_its_spans() -> None:
    source = read(
        "from models import build\nm = build(3)\n" + K + "d = layers.Dense(1)", **{"models.py": BUILD}
    )
    own, other = source.sites
    assert (own.file, own.span.line, own.scope) == ("", 4, "")
    assert (other.file, other.span.line, other.scope) == ("models.py", 3, "build")
    assert other.arguments == {"units": Unknown("n")}


def test_classes_of_a_module_are_known() -> None:
    blocks = K + (
        "class Block(layers.Layer):\n  def __init__(self, n):\n    super().__init__()\n    self.a = layers.Dense(n)\n"
        "  def build(self, shape):\n    self.b = layers.Dense(shape[-1])\n"
        "  def call(self, x):\n    return self.b(self.a(x))\n"
    )
    source = read(
        K + "from blocks import Block\nm = keras.Sequential([Block(4), layers.Dense(1)])",
        **{"blocks.py": blocks},
    )
    assert steps(source) == [[":4 Block", ":4 Dense"], ["blocks.py:6 Dense", "blocks.py:8 Dense"]]
    assert {one.label: one.makers for one in source.outlines}["Block"] == (0,)


def test_only_what_the_program_uses_of_a_module_is_told() -> None:
    models = BUILD + "def other():\n  return keras.Sequential([layers.Flatten()])\nspare = layers.ReLU()\n"
    source = read("from models import build\nm = build()", **{"models.py": models})
    assert [site.class_name for site in source.sites] == ["Dense"]


def test_a_module_is_run_once_and_its_constants_are_known() -> None:
    program = K + (
        "import config, config as again\nfrom config import UNITS\nimport nets\n"
        "m = keras.Sequential([layers.Dense(UNITS), layers.Dense(again.UNITS), nets.head()])"
    )
    files = {
        "config.py": "UNITS = 7",
        "nets.py": K + "from config import UNITS\ndef head(): return layers.Dense(UNITS)",
    }
    source = read_program(program, Folder(files))
    assert [site.arguments for site in source.sites] == [{"units": 7}] * 3
    assert source.modules == ("config.py", "nets.py")


def test_main_is_the_program_alone() -> None:
    models = BUILD + "if __name__ == '__main__':\n  keras.Sequential([layers.Flatten()])\n"
    program = "from models import build\nif __name__ == '__main__':\n  m = build()"
    assert steps(read(program, **{"models.py": models})) == [["models.py:4 Dense"]]


def test_modules_that_import_each_other() -> None:
    a = K + "import b\ndef head(x): return b.tail(layers.Dense(1)(x))"
    b = K + "import a\ndef tail(x): return layers.ReLU()(x)\nwide = 3"
    program = K + "import a\ni = layers.Input((2,))\nm = keras.Model(i, a.head(i))"
    source = read(program, **{"a.py": a, "b.py": b})
    assert steps(source) == [[":4 InputLayer", "a.py:4 Dense", "b.py:4 ReLU"]]


def test_a_module_that_imports_itself_or_the_missing() -> None:
    text = "import models\nfrom models import *\nfrom models import gone\nfrom missing import more\n" + BUILD
    source = read("import models\nm = models.build()", **{"models.py": text})
    assert steps(source) == [["models.py:8 Dense"]]


def test_a_module_that_is_no_python_is_skipped() -> None:
    program = K + "from models import build\nm = keras.Sequential([layers.Dense(1)])"
    source = read(program, **{"models.py": "def build(:"})
    assert steps(source) == [[":4 Dense"]]
    assert source.modules == ("models.py",)


def test_names_set_from_outside_count() -> None:
    models = K + "N = 1\ndef build(): return keras.Sequential([layers.Dense(N)])"
    source = read("import models\nmodels.N = 5\nm = models.build()", **{"models.py": models})
    assert source.sites[0].arguments == {"units": 5}


def test_a_comment_of_a_module_silences_its_line() -> None:
    models = K + "def build():\n  return keras.Sequential([layers.Dense(1)])  # guider: ignore"
    (site,) = read("import models\nm = models.build()", **{"models.py": models}).sites
    assert site.ignored


def test_what_does_not_run_imports_nothing() -> None:
    folder = Folder({"models.py": BUILD})
    source = read_program(K + "if False:\n  import models\nd = layers.Dense(1)", folder)
    assert source.modules == ()


def test_a_program_without_keras_and_without_modules_is_not_parsed() -> None:
    assert read_program("import this\nx = (", Folder({})) == SourceMap((), ())


def test_a_program_that_has_nothing_to_do_with_keras_is_not_parsed() -> None:
    folder = Folder({"a.py": "from . import b\nfrom a import *", "b.py": "x = ("})
    assert read_program("from .a import run\nx = (", folder) == SourceMap((), ())


def test_a_long_chain_of_imports_ends() -> None:
    files = {f"m{i}.py": f"from m{i + 1} import build" for i in range(60)}
    files["m60.py"] = BUILD
    source = read_program("from m0 import build\nm = build()", Folder(files))
    assert steps(source) == [["m60.py:4 Dense"]]


def test_the_call_of_the_program_that_has_a_layer_made() -> None:
    inner = "from keras import layers\ndef block(x):\n    x = layers.Dense(4)(x)\n    return twice(x)\n"
    inner += "def twice(x):\n    return layers.Dense(5)(x)\n"
    program = "import keras\nfrom blocks import block\ni = keras.Input((3,))\nx = block(i)\n"
    program += "x = keras.layers.Dense(6)(block(x))\nm = keras.Model(i, x)\n"
    (outline,) = read_program(program, Folder({"blocks.py": inner})).outlines
    calls = [
        step.caller and (step.caller.line, step.caller.column, step.caller.end_column)
        for step in outline.steps
    ]
    first, second = (3, 4, 12), (4, 26, 34)
    assert calls == [None, first, first, None, second, second]


def test_two_calls_that_build_the_same_model_are_not_told_apart() -> None:
    program = "from models import build\na = build()\nb = build()\n"
    (outline,) = read_program(program, Folder({"models.py": BUILD})).outlines
    assert {step.caller for step in outline.steps} == {None}


def test_a_file_that_a_module_writes_is_told_where_the_program_has_it_written() -> None:
    utils = "import numpy as np\ndef keep(model, path):\n  model.save(path)\nnp.savez('t.npz', x=1)\n"
    program = K + "import utils\nm = keras.Sequential([layers.Dense(1)])\nutils.keep(m, 'm.keras')\n"
    source = read(program, **{"utils.py": utils})
    (artifact,) = source.artifacts
    assert (artifact.path, artifact.span.line, artifact.outline) == ("m.keras", 4, 0)
