"""Which program, model and test set belong together: named in the settings, captured, or written by the program.

Nothing is guessed: two models to choose from are an error that lists them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Literal

import attrs

from guider_engine.wire import CapturedModel, Inputs
from guider_ls.errors import InputError, UsageError
from guider_ls.project import artifacts
from guider_ls.project.artifacts import Candidate, absolute, exists
from guider_ls.project.captures import Capture
from guider_ls.project.settings import FUNCTION, OF_TARGET, Settings, TargetSettings
from guider_ls.source.sites import Artifact, SourceMap, line_name

PROGRAMS = frozenset({".py", ".pyw"})
"""Suffixes of the files that can be run: notebooks are only read."""

_MODELS = (".keras", ".h5", ".hdf5")
_Part = Literal["model", "test_data"]
_KINDS = {"model": "model", "test_data": "tests"}
_NAMES: dict[_Part, str] = {"model": "model", "test_data": "test set"}


@attrs.frozen(slots=True)
class Target:
    """A model and its test set, and the program that made them where it is known. Paths are absolute."""

    root: Path
    program: Path | None
    model: Path | None
    """A file or a folder; or a ``module:function``, as it is written; ``None``: the function ``load`` returns it."""
    test_data: tuple[str, ...]
    """A file or a folder, two ``.npy`` (inputs, labels), or one ``module:function``; empty: ``load`` returns them."""
    model_source: str
    """How the model was found, for people."""
    test_source: str
    """How the test set was found, for people."""
    capture: Capture | None = None
    """The run that the model was captured from, where it was."""
    captured: CapturedModel | None = None
    """The model, where it was captured."""

    @property
    def source(self) -> str:
        """How both were found, for people."""
        return f"model: {self.model_source}; test set: {self.test_source}"


def project_root(program: Path) -> Path:
    """The nearest parent of the program with a ``pyproject.toml`` or ``.git``, else the program's folder."""
    folder = absolute(program).parent
    for parent in (folder, *folder.parents):
        if exists(parent / "pyproject.toml") or exists(parent / ".git"):
            return parent
    return folder


def for_program(settings: Settings, program: Path | None, root: Path, name: str = "") -> Settings:
    """Reduce the settings to those of one program: its entry of ``targets`` goes into ``model`` and the like.

    What the settings say beside ``targets`` comes first, unless they say it of another program. Without a
    program, the one that the settings name is taken.

    Args:
        settings: as read; relative paths in it are relative to ``root``.
        program: the program in question, if any.
        root: folder of the project.
        name: of the target to take whatever the program is; empty: the program decides.

    Raises:
        UsageError: "target-unknown", no target has that name.
        InputError: "target-ambiguous", more than one target fits.
    """
    own = TargetSettings(program=settings.program, **{name: getattr(settings, name) for name in OF_TARGET})
    if program is not None and own.program and not _same(absolute(own.program, root), program):
        own = TargetSettings()
    if name:
        chosen = _named(settings.targets, name, root)
    elif program is None and own != TargetSettings():
        chosen = own
    else:
        chosen = _of_program(settings.targets, program, root)
        chosen = attrs.evolve(
            chosen, **{name: getattr(own, name) or getattr(chosen, name) for name in OF_TARGET}
        )
    return attrs.evolve(
        settings,
        program=str(program) if program is not None else chosen.program,
        targets=(),
        **{name: getattr(chosen, name) for name in OF_TARGET},
    )


def program_of(settings: Settings, root: Path) -> Path | None:
    """The program that the settings name, absolute, whether it exists or not."""
    return absolute(settings.program, root) if settings.program else None


def find_target(
    program: Path | None,
    root: Path,
    settings: Settings,
    source: SourceMap | None,
    capture: Capture | None = None,
    *,
    trained: bool = False,
) -> Target:
    """Find the model and the test set of a program (of the settings' program, where it is ``None``).

    Each is what the settings name (relative to ``root``), or what their function ``load`` returns; else what was
    captured by running the program as it is now; else the one file that the program says it writes (relative to its
    own folder or to ``root``) and that exists; else what was captured by running it as it was.

    Args:
        program: in question.
        root: folder of the project.
        settings: of the project.
        source: the program as it was read.
        capture: its latest capture.
        trained: whether it was run for this very purpose: then the model is the captured one, in any case.

    Raises:
        InputError: "target-missing", "target-ambiguous", "model-missing", "test-data-missing",
            "captured-model-unknown" or "captured-no-tests".
    """
    root = absolute(root)
    settings = for_program(settings, absolute(program) if program else None, root)
    program = program_of(settings, root)
    written = _Written(source.artifacts if source is not None else (), program, root)
    named = bool(settings.model or settings.load)
    if capture is not None and (trained or (capture.holds and not named)):
        return _of_capture(capture, settings, written)
    if capture is not None and not named:
        try:
            return _of_files(settings, written)
        except InputError as error:
            if error.code in ("target-missing", "target-ambiguous"):
                return _of_capture(capture, settings, written)
            raise
    return _of_files(settings, written)


def _of_capture(capture: Capture, settings: Settings, written: _Written) -> Target:
    chosen = capture.model(settings.capture_model)
    how = capture.source if capture.holds else f"{capture.source}, which was before the program changed"
    if settings.test_data:
        tests, test_source = _named_tests(settings, written.root), "settings"
    elif chosen.tests:
        tests, test_source = (chosen.tests,), chosen.data
    elif len(found := artifacts.test_sets(written.artifacts, written.folders)) == 1:
        tests, test_source = tuple(map(str, found[0].paths)), written.said_by(found[0].artifact)
    else:
        raise InputError(
            "captured-no-tests",
            f"{chosen.name} was {capture.source}, without tests: {chosen.data or 'it was not evaluated'}.\n"
            f"Evaluate it on test data (model.evaluate), or name a test set with the option --test-data, with the "
            f"editor's setting guider.testData, or in {written.root / 'pyproject.toml'}:\n"
            f"{_lines(written.program, written.root, {'test_data': ['test.npz']})}",
        )
    return Target(
        written.root,
        written.program,
        Path(chosen.path),
        tests,
        f"{chosen.name}, {how}",
        test_source,
        capture,
        chosen,
    )


def _of_files(settings: Settings, written: _Written) -> Target:
    root = written.root
    loaded = f"{settings.load}, as the settings say"
    models = artifacts.models(written.artifacts, written.folders)
    test_sets = artifacts.test_sets(written.artifacts, written.folders)
    if not (settings.model or models or settings.test_data or test_sets or settings.load):
        raise _missing(written, "model", "test_data")
    model: Path | None
    if settings.model:
        model, model_source = Path(_file_or_function(settings.model, root, "model")), "settings"
    elif settings.load:
        model, model_source = None, loaded
    else:
        one = _only(models, "model", written)
        model, model_source = one.paths[0], written.said_by(one.artifact)
    if settings.test_data:
        test_data, test_source = _named_tests(settings, root), "settings"
    elif settings.load:
        test_data, test_source = (), loaded
    else:
        one = _only(test_sets, "test_data", written)
        test_data, test_source = tuple(map(str, one.paths)), written.said_by(one.artifact)
    return Target(root, written.program, model, test_data, model_source, test_source)


def _named_tests(settings: Settings, root: Path) -> tuple[str, ...]:
    return tuple(_file_or_function(item, root, "test_data") for item in settings.test_data)


def existing_model(item: str, root: Path) -> str:
    """A model as the engine wants it: an absolute path, or a ``module:function`` as it is written.

    Raises:
        InputError: "model-missing".
    """
    return _file_or_function(item, root, "model")


def to_inputs(target: Target, settings: Settings) -> Inputs:
    """What the engine is asked for this target with these settings."""
    return Inputs(
        model=str(target.model) if target.model is not None else "",
        test_data=target.test_data,
        root=str(target.root),
        formula=settings.formula,
        aggregation=settings.aggregation,
        weighted=settings.weighted,
        threshold=settings.threshold,
        neurons_per_layer=settings.neurons_per_layer,
        seed=settings.seed,
        task=settings.task,
        safe_mode=settings.safe_mode,
        load=""
        if target.captured is not None
        else settings.load,  # a captured model is loaded as it was saved
        custom_objects=settings.custom_objects,
        label=settings.label,
        image_scale=settings.image_scale,
        max_tests=settings.max_tests,
        neuron=settings.neuron,
        recurrent=settings.recurrent,
        tolerance=settings.tolerance,
        accuracy=settings.accuracy,
        quantile=settings.quantile,
        oracle=settings.oracle,
    )


def is_function(item: str) -> bool:
    """Whether a model or test set is given as ``module:function`` rather than as a file."""
    return FUNCTION.fullmatch(item) is not None


def _same(one: Path, other: Path) -> bool:
    return absolute(one) == absolute(other) or one.resolve() == other.resolve()


def _named(targets: Sequence[TargetSettings], name: str, root: Path) -> TargetSettings:
    for target in targets:
        if target.name == name:
            return target
    names = ", ".join(target.name for target in targets if target.name)
    raise UsageError(
        "target-unknown",
        f'No target is called "{name}". [[tool.guider.targets]] in {root / "pyproject.toml"} '
        + (f"has these: {names}." if names else "names none."),
    )


def _of_program(targets: Sequence[TargetSettings], program: Path | None, root: Path) -> TargetSettings:
    """The one target of the program, else the one that names no program; empty where there is none."""
    fitting = list(targets)
    if program is not None:
        fitting = [t for t in targets if t.program and _same(absolute(t.program, root), program)]
        fitting = fitting or [t for t in targets if not t.program]
    if len(fitting) > 1:
        names = ", ".join(t.name or t.program or t.model for t in fitting)
        fit = f"fit {program.name}" if program else "are there, and no program says which is meant"
        where = f"[[tool.guider.targets]] in {root / 'pyproject.toml'}"
        raise InputError(
            "target-ambiguous",
            f"{len(fitting)} targets of {where} {fit}: {names}.\n"
            "Choose one with --target NAME, or write in each the program that it belongs to.",
        )
    return fitting[0] if fitting else TargetSettings()


def _existing(item: str, root: Path, part: _Part) -> Path:
    path = absolute(item, root)
    try:
        if path.exists():
            return path
        beside = _beside(path, part)
    except OSError as error:  # a folder that may not be entered, a name that is too long
        beside = f"It cannot be looked at: {error.strerror}."
    code = {"model": "model-missing", "test_data": "test-data-missing"}[part]
    raise InputError(
        code,
        f"There is no {_NAMES[part]} {path.name} in {path.parent}. {beside}\n"
        f"Correct the path (a relative one starts at {root}), or run the program that writes the file.",
    )


def _beside(path: Path, part: _Part) -> str:
    """What is there in place of a missing file."""
    if not path.parent.is_dir():
        return "Nor is there such a folder."
    kinds = _MODELS if part == "model" and path.suffix in ("", *_MODELS) else (path.suffix,)
    near = sorted(p.name for p in path.parent.iterdir() if p.suffix in kinds)[:5]
    return f"In that folder there is {', '.join(near)}." if near else f"No {kinds[0]} file is in that folder."


def _file_or_function(item: str, root: Path, part: _Part) -> str:
    if is_function(item) and not exists(absolute(item, root)):
        return item
    return str(_existing(item, root, part))


def _only(found: Sequence[Candidate], part: _Part, written: _Written) -> Candidate:
    if len(found) == 1:
        return found[0]
    if not found:
        raise _missing(written, part)
    root = written.root
    listed = "\n".join(
        f"  {', '.join(_short(path, root) for path in one.paths)} ({written.said_by(one.artifact)})"
        for one in found
    )
    example = _lines(written.program, root, {part: [_short(path, root) for path in found[0].paths]})
    raise InputError(
        "target-ambiguous",
        f"There is more than one {_NAMES[part]} to choose from:\n{listed}\n"
        f"Name the one that is meant in {root / 'pyproject.toml'}, for example:\n{example}",
    )


def _missing(written: _Written, *parts: _Part) -> InputError:
    """Nothing names a model, a test set, or both, and no file of the program is one."""
    one = len(parts) == 1
    what = f"no {_NAMES[parts[0]]}" if one else "neither a model nor a test set"
    why = " ".join(dict.fromkeys(written.why_none(part) for part in parts))
    program = written.program
    run = (
        f"Have {program.name} run and watched, which finds both: guider-ls localize --run {program.name}, in the "
        "editor GUIDER: Train and Localize. Or name"
        if program is not None and program.suffix in PROGRAMS
        else "Name"
    )
    options = " and ".join({"model": "--model", "test_data": "--test-data"}[part] for part in parts)
    names = " and ".join({"model": "guider.model", "test_data": "guider.testData"}[part] for part in parts)
    files: dict[_Part, list[str]] = {"model": ["model.keras"], "test_data": ["test.npz"]}
    plural = "" if one else "s"
    return InputError(
        "target-missing",
        f"There is {what}: the settings name none, and {why}\n"
        f"{run} {'it' if one else 'them'} with the option{plural} {options}, with the editor's setting{plural} "
        f"{names}, or in {written.root / 'pyproject.toml'}:\n"
        f"{_lines(program, written.root, {part: files[part] for part in parts})}",
    )


@attrs.frozen(slots=True)
class _Written:
    """What a program says it writes, and where that may be."""

    artifacts: Sequence[Artifact]
    program: Path | None
    root: Path

    @property
    def folders(self) -> tuple[Path, ...]:
        return tuple(dict.fromkeys((self.program.parent, self.root) if self.program else (self.root,)))

    def said_by(self, artifact: Artifact) -> str:
        name = self.program.name if self.program else "program"
        return f"{name}, {line_name(artifact.span.line, artifact.cell)}"

    def why_none(self, part: _Part) -> str:
        """Why there is no file for that part; a sentence's end."""
        if self.program is None:
            return "no program was given that may write one."
        name = self.program.name
        written = [a for a in self.artifacts if a.kind == _KINDS[part]]
        if not written:
            call = 'model.save("model.keras")' if part == "model" else 'np.savez("test.npz", x=..., y=...)'
            return f"{name} has no call like {call} that says where it writes one."
        said = ", ".join(f"{a.path} ({self.said_by(a)})" for a in written)
        if not any(a.known for a in written):
            return f"the path of what {name} writes is known only when it runs: {said}."
        places = " or ".join(map(str, self.folders))
        return f"what {name} writes makes none in {places}: {said}. Has the program been run?"


def _short(path: Path, root: Path) -> str:
    return path.relative_to(root).as_posix() if path.is_relative_to(root) else str(path)


def _lines(program: Path | None, root: Path, items: Mapping[_Part, Sequence[str]]) -> str:
    """Lines for ``pyproject.toml``; in single quotes, where TOML takes a Windows path as it is."""
    lines = ["  [tool.guider]"]
    if program is not None:
        lines.append(f"  program = '{_short(program, root)}'")
    for part, values in items.items():
        quoted = [f"'{value}'" for value in values]
        value = quoted[0] if len(quoted) == 1 else f"[{', '.join(quoted)}]"
        lines.append(f"  {part} = {value}")
    return "\n".join(lines)
