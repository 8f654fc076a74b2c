"""Which program, model and test set belong together: named in the settings, or written by the program itself.

Nothing is guessed: two models to choose from are an error that lists them.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path
from typing import Literal

import attrs

from guider_engine.wire import Inputs
from guider_ls.errors import InputError, UsageError
from guider_ls.project import artifacts
from guider_ls.project.artifacts import Candidate, absolute, exists
from guider_ls.project.settings import Settings, TargetSettings
from guider_ls.source.sites import Artifact, SourceMap

_FUNCTION = re.compile(r"[^\W\d]\w*(\.[^\W\d]\w*)*:[^\W\d]\w*(\.[^\W\d]\w*)*")
_MODELS = (".keras", ".h5", ".hdf5")
_Part = Literal["model", "test_data"]
_NAMES: dict[_Part, str] = {"model": "model", "test_data": "test set"}


@attrs.frozen(slots=True)
class Target:
    """A model and its test set, and the program that made them where it is known. Paths are absolute."""

    root: Path
    program: Path | None
    model: Path
    """A file; or a ``module:function``, as it is written."""
    test_data: tuple[str, ...]
    """One ``.npz``, two ``.npy`` (inputs, labels), or one ``module:function``."""
    model_source: str
    """How the model was found, for people."""
    test_source: str
    """How the test set was found, for people."""

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
    own = TargetSettings(program=settings.program, model=settings.model, test_data=settings.test_data)
    if program is not None and own.program and not _same(absolute(own.program, root), program):
        own = TargetSettings()
    if name:
        chosen = _named(settings.targets, name, root)
    elif program is None and own != TargetSettings():
        chosen = own
    else:
        chosen = _of_program(settings.targets, program, root)
        chosen = attrs.evolve(
            chosen, model=own.model or chosen.model, test_data=own.test_data or chosen.test_data
        )
    return attrs.evolve(
        settings,
        program=str(program) if program is not None else chosen.program,
        model=chosen.model,
        test_data=chosen.test_data,
        targets=(),
    )


def program_of(settings: Settings, root: Path) -> Path | None:
    """The program that the settings name, absolute, whether it exists or not."""
    return absolute(settings.program, root) if settings.program else None


def find_target(program: Path | None, root: Path, settings: Settings, source: SourceMap | None) -> Target:
    """Find the model and the test set of a program (of the settings' program, where it is ``None``).

    Each is what the settings name (relative to ``root``), else the one file that the program says it writes
    (relative to its own folder or to ``root``) and that exists.

    Raises:
        InputError: "target-missing", "target-ambiguous", "model-missing" or "test-data-missing".
    """
    root = absolute(root)
    settings = for_program(settings, absolute(program) if program else None, root)
    program = program_of(settings, root)
    written = source.artifacts if source is not None else ()
    folders = tuple(dict.fromkeys((program.parent, root) if program else (root,)))

    if settings.model:
        model, model_source = Path(_file_or_function(settings.model, root, "model")), "settings"
    else:
        found = artifacts.models(written, folders)
        one = _only(found, "model", program, root, folders, [a for a in written if a.kind == "model"])
        model, model_source = one.paths[0], _said_by(one.artifact, program)

    if settings.test_data:
        test_data = tuple(_file_or_function(item, root, "test_data") for item in settings.test_data)
        test_source = "settings"
    else:
        found = artifacts.test_sets(written, folders)
        one = _only(found, "test_data", program, root, folders, [a for a in written if a.kind == "tests"])
        test_data = tuple(map(str, one.paths))
        test_source = _said_by(one.artifact, program)
    return Target(root, program, model, test_data, model_source, test_source)


def existing_model(item: str, root: Path) -> str:
    """A model as the engine wants it: an absolute path, or a ``module:function`` as it is written.

    Raises:
        InputError: "model-missing".
    """
    return _file_or_function(item, root, "model")


def to_inputs(target: Target, settings: Settings) -> Inputs:
    """What the engine is asked for this target with these settings."""
    return Inputs(
        model=str(target.model),
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
    )


def is_function(item: str) -> bool:
    """Whether a model or test set is given as ``module:function`` rather than as a file."""
    return _FUNCTION.fullmatch(item) is not None


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


def _only(
    found: Sequence[Candidate],
    part: _Part,
    program: Path | None,
    root: Path,
    folders: Sequence[Path],
    written: Sequence[Artifact],
) -> Candidate:
    if len(found) == 1:
        return found[0]
    where = root / "pyproject.toml"
    if found:
        listed = "\n".join(
            f"  {', '.join(_short(path, root) for path in one.paths)} ({_said_by(one.artifact, program)})"
            for one in found
        )
        example = _lines(program, root, part, [_short(path, root) for path in found[0].paths])
        raise InputError(
            "target-ambiguous",
            f"There is more than one {_NAMES[part]} to choose from:\n{listed}\n"
            f"Name the one that is meant in {where}, for example:\n{example}",
        )
    option, setting, file = {
        "model": ("--model", "guider.model", "model.keras"),
        "test_data": ("--test-data", "guider.testData", "test.npz"),
    }[part]
    why = _why_none(written, folders, program, part)
    raise InputError(
        "target-missing",
        f"There is no {_NAMES[part]}: the settings name none, and {why}\n"
        f"Name it with the option {option}, with the editor's setting {setting}, or in {where}:\n"
        f"{_lines(program, root, part, [file])}",
    )


def _why_none(written: Sequence[Artifact], folders: Sequence[Path], program: Path | None, part: _Part) -> str:
    if program is None:
        return "no program was given that may write one."
    if not written:
        call = 'model.save("model.keras")' if part == "model" else 'np.savez("test.npz", x=..., y=...)'
        return f"{program.name} has no call like {call} that says where it writes one."
    said = ", ".join(f"{a.path} ({_said_by(a, program)})" for a in written)
    if not any(a.known for a in written):
        return f"the path of what {program.name} writes is known only when it runs: {said}."
    places = " or ".join(map(str, folders))
    return f"what {program.name} writes makes none in {places}: {said}. Has the program been run?"


def _said_by(artifact: Artifact, program: Path | None) -> str:
    return f"{program.name if program else 'program'}, line {artifact.span.line + 1}"


def _short(path: Path, root: Path) -> str:
    return path.relative_to(root).as_posix() if path.is_relative_to(root) else str(path)


def _lines(program: Path | None, root: Path, part: _Part, items: Sequence[str]) -> str:
    """Lines for ``pyproject.toml``; in single quotes, where TOML takes a Windows path as it is."""
    quoted = [f"'{item}'" for item in items]
    value = quoted[0] if len(quoted) == 1 else f"[{', '.join(quoted)}]"
    lines = ["  [tool.guider]", f"  {part} = {value}"]
    if program is not None:
        lines.insert(1, f"  program = '{_short(program, root)}'")
    return "\n".join(lines)
