"""How often the static mapping of layers to lines is right, measured against runs of the programs.

Each program runs under capture, which sees the call that constructs a layer; what the text alone says is held
against that: ``make bench-mapping`` for the fixtures of the tests, ``GUIDER=FOLDER`` for the programs of GUIDER's
replication package, ``KERAS_IO="FOLDER …"`` for copies of the examples and guides of keras-io.

Precision: of the pairs that the text gives, those that are right. Recall: of the layers that a line of the project
constructs, those with a right pair. A layer counts once for each model that it is part of. What a line gets
ready-made (a network of ``keras.applications``, a loaded model) counts as one layer for each model; input layers
that Keras inserts are left out, and so are layers that no line of the project constructs: both are counted apart.
"""

from __future__ import annotations

import argparse
import ast
import asyncio
import csv
import hashlib
import json
import os
import platform
import re
import sys
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

from benchmarks.capturing import Captures, Job, Limits, Run

from guider_engine.wire import ModelLayer, ModelSummary, Origin
from guider_ls.errors import InputError
from guider_ls.mapping import captured
from guider_ls.mapping.align import align
from guider_ls.mapping.mapping import Mapping
from guider_ls.project.reading import read
from guider_ls.source.decode import decode
from guider_ls.source.sites import LayerSite, SourceMap

FIXTURES = Path(__file__).resolve().parents[1] / "tests" / "fixtures"
GOALS = {"precision": 0.995, "recall": 0.98}

Half = Literal["dev", "test", "all"]
"""Which half of its set a program belongs to; ``all`` in a set that is not halved."""
Verdict = Literal["right", "wrong", "ambiguous", "missing"]
Kind = Literal["own", "ready-made", "inserted", "elsewhere"]
"""What constructs a layer: a call of the project's own code; one that gives many at once; Keras; no own code."""

_READY_MADE = re.compile(
    r"(VGG|ResNet|Xception|Inception|MobileNet|DenseNet|NASNet|EfficientNet|ConvNeXt|RegNet)\w*"
    r"|load_model|model_from_\w+|from_config|from_preset|KerasLayer|deserialize|TFSMLayer"
)
"""Names of functions that construct many layers at once."""


@dataclass(frozen=True, slots=True)
class Judged:
    """One layer of a captured model, and what a mapping says of it."""

    model: str
    layer: ModelLayer
    kind: Kind
    verdict: Verdict
    given: LayerSite | None
    cause: str
    """Of a miss; empty where it is right."""
    said: str
    """The mapping's own reason, of a miss."""


@dataclass(slots=True)
class Tally:
    """Counts of one set or of a half of it."""

    programs: int = 0
    ran: int = 0
    """Programs of which a model with layers was captured."""
    models: int = 0
    layers: int = 0
    sites: int = 0
    counts: Counter[tuple[str, Kind, Verdict]] = field(default_factory=Counter)
    """By ``static`` or ``capture``."""
    causes: Counter[str] = field(default_factory=Counter)
    stopped: Counter[str] = field(default_factory=Counter)
    """Why programs gave no model."""

    def __add__(self, other: Tally) -> Tally:
        return Tally(
            self.programs + other.programs,
            self.ran + other.ran,
            self.models + other.models,
            self.layers + other.layers,
            self.sites + other.sites,
            self.counts + other.counts,
            self.causes + other.causes,
            self.stopped + other.stopped,
        )

    def count(self, way: str, *verdicts: Verdict) -> int:
        """Layers that count, of some verdicts (of all, if none is named)."""
        return sum(
            self.counts[way, kind, verdict]
            for kind in ("own", "ready-made")
            for verdict in verdicts or ("right", "wrong", "ambiguous", "missing")
        )

    def wrong(self, way: str) -> int:
        """Wrong pairs, of whatever layers."""
        return sum(
            number for (of, _, verdict), number in self.counts.items() if (of, verdict) == (way, "wrong")
        )

    def left_out(self, kind: Kind) -> int:
        """Layers of a kind that does not count."""
        return sum(number for (way, of, _), number in self.counts.items() if (way, of) == ("static", kind))

    def precision(self, way: str) -> float | None:
        """Right pairs of the pairs that are given; wrong pairs of layers that do not count, count."""
        right, wrong = self.count(way, "right"), self.wrong(way)
        return right / (right + wrong) if right + wrong else None

    def recall(self, way: str) -> float | None:
        """Right pairs of the layers that a line of the project constructs."""
        every = self.count(way)
        return self.count(way, "right") / every if every else None


Row = tuple[str, str, Tally]
"""Set, half and counts."""

# Judging, pure


def is_same(site: LayerSite, origin: Origin, program: str) -> bool:
    """Whether a site is the call that was seen; ``program`` is the file that a site without one stands in."""
    if (site.file or program) != origin.file:
        return False
    if origin.end_line is None:
        return site.span.line <= origin.line <= site.span.end_line
    return (site.span.end_line, site.span.end_column) == (origin.end_line, origin.end_column)


def callee(text: str, origin: Origin) -> str:
    """What is called there, as written: ``layers.Dense``; empty where it is not a plain name."""
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.Call) and node.end_lineno is not None and node.end_col_offset is not None:
            line = text.split("\n")[node.end_lineno - 1].encode()
            end = (node.end_lineno - 1, len(line[: node.end_col_offset].decode()))
            if end == (origin.end_line, origin.end_column):
                return ast.unparse(node.func) if isinstance(node.func, (ast.Name, ast.Attribute)) else ""
    return ""


def made_whole(model: ModelSummary) -> frozenset[Origin]:
    """Calls that constructed a layer together with those inside it."""
    return frozenset(
        layer.origin
        for layer in model.all_layers()
        for inner in layer.inner
        if layer.origin is not None and inner.origin == layer.origin
    )


def kind_of(layer: ModelLayer, called: str, whole: Collection[Origin] = ()) -> Kind:
    """What constructs a layer.

    Args:
        layer: with its origin.
        called: what the call of its origin calls.
        whole: calls that construct a layer with what is inside.
    """
    if layer.class_name == "InputLayer" and not re.search(r"Input(Layer)?$|^$", called):
        return "inserted"
    if layer.origin is None:
        return "inserted" if layer.class_name == "InputLayer" else "elsewhere"
    last = called.rpartition(".")[2]
    if layer.origin in whole or _READY_MADE.fullmatch(last):
        return "ready-made"
    return "own"


def judge(
    name: str,
    model: ModelSummary,
    mapping: Mapping,
    source: SourceMap,
    program: str,
    called: dict[Origin, str],
) -> Iterator[Judged]:
    """What a mapping says of every layer of a model, held against the origins.

    Args:
        name: of the model, for people.
        model: with its origins.
        mapping: of the same layers.
        source: that the mapping was made of.
        program: file of the program.
        called: what is called at each origin.
    """
    unmatched = {one.layer: one for one in mapping.unmatched_layers}
    matched = {match.layer: match.site for match in mapping.matches}
    ready: dict[Origin, list[Judged]] = {}
    whole = made_whole(model)
    for layer in model.all_layers():
        kind = kind_of(layer, called.get(layer.origin, "") if layer.origin else "", whole)
        site = matched.get(layer.path)
        left = unmatched.get(layer.path)
        verdict: Verdict
        if site is not None:
            right = layer.origin is not None and is_same(site, layer.origin, program)
            verdict = "right" if right else "wrong"
        else:
            verdict = "ambiguous" if left is not None and left.candidates else "missing"
        cause = (
            ""
            if verdict == "right"
            else _cause(layer, verdict, source, program, left.candidates if left is not None else ())
        )
        said = left.reason if left is not None else ""
        one = Judged(name, layer, kind, verdict, site, cause, said)
        if kind == "ready-made" and layer.origin is not None:
            ready.setdefault(layer.origin, []).append(one)
        else:
            yield one
    for parts in ready.values():  # the first stands for all of them, the worst counts
        order = ("wrong", "right", "ambiguous", "missing")
        yield min(parts, key=lambda part: order.index(part.verdict))


def _cause(
    layer: ModelLayer,
    verdict: Verdict,
    source: SourceMap,
    program: str,
    candidates: Sequence[LayerSite],
) -> str:
    origin = layer.origin
    if origin is None:
        return "no line of the project constructs it" if verdict == "wrong" else ""
    true = [index for index, site in enumerate(source.sites) if is_same(site, origin, program)]
    where = "" if origin.file == program else ", in another module"
    if verdict == "wrong":
        return "wrong line" + ("" if true else ", the true one is not known" + where)
    if not true:
        return "no site at the line" + where
    if verdict == "ambiguous":
        among = any(is_same(site, origin, program) for site in candidates)
        return "ambiguous" if among else "ambiguous, the line not among the candidates"
    outlined = any(step.site in true for outline in source.outlines for step in outline.steps)
    return "left out, though its line is in a construction" if outlined else "its line is in no construction"


def without_origins(model: ModelSummary) -> ModelSummary:
    """The model as a file has it."""
    import dataclasses

    def bare(layer: ModelLayer) -> ModelLayer:
        inner = tuple(bare(one) for one in layer.inner)
        return dataclasses.replace(layer, origin=None, callers=(), inner=inner)

    return dataclasses.replace(model, layers=tuple(bare(layer) for layer in model.layers))


# The sets


@dataclass(frozen=True, slots=True)
class Set:
    """Programs of one kind; each belongs to a half."""

    name: str
    jobs: tuple[tuple[Job, Half], ...]


def fixtures() -> Set:
    """The programs of the tests, and their projects of several modules."""
    programs = [
        Job(path.stem, path, path.parent, alone=True) for path in sorted(FIXTURES.glob("programs/*.py"))
    ]
    projects = [
        Job(path.parent.name, path, path.parent, alone=False)
        for path in sorted(FIXTURES.glob("projects/*/train.py"))
    ]
    return Set("fixtures", tuple((job, "all") for job in [*programs, *projects]))


def guider(folder: Path, halves: dict[str, Half]) -> Set:
    """The programs of GUIDER's replication package; a bug without a half has that of its number."""
    jobs: list[tuple[Job, Half]] = []
    for bug in sorted((folder / "Dataset" / "bugs").iterdir()):
        programs = sorted(bug.glob("*bug*.py"))
        if programs:
            job = Job(bug.name, programs[0], bug, alone=False)
            jobs.append((job, halves.get(bug.name) or half(bug.name)))
    return Set("guider161", tuple(jobs))


def keras_io(folders: Iterable[Path]) -> Set:
    """Examples and guides of copies of keras-io; a file's half is that of its path."""
    jobs: list[tuple[Job, Half]] = []
    for folder in folders:
        for path in sorted(folder.rglob("*.py")):
            name = path.relative_to(folder).as_posix()
            jobs.append((Job(f"{folder.name}/{name}", path, path.parent, alone=True), half(name)))
    return Set("keras-io", tuple(jobs))


def half(name: str) -> Half:
    """``dev`` where the SHA-1 of the name starts with 0 to 7."""
    return "dev" if hashlib.sha1(name.encode()).hexdigest()[0] < "8" else "test"


# One program


def measure(job: Job, run: Run, tally: Tally) -> list[Judged]:
    """Add what one program shows to a tally; returns the misses of the static mapping."""
    tally.programs += 1
    record = run.record
    models = [] if record is None else [one for one in record.models if one.model.layers]
    if record is None or not models:
        tally.stopped[_why(run.failure)] += 1
        return []
    text = decode(job.path.read_bytes())
    try:
        source = read(text, job.path, job.root)
    except InputError as error:
        tally.stopped[error.code] += 1
        return []
    tally.ran += 1
    tally.models += len(models)
    tally.sites += len(source.sites)
    called: dict[Origin, str] = {}
    texts: dict[str, str] = {}
    misses: list[Judged] = []
    for one in models:
        model = _absolute(one.model, job.root)
        for layer in model.all_layers():
            tally.layers += 1
            if layer.origin is not None and layer.origin not in called:
                file = layer.origin.file
                texts.setdefault(file, decode(Path(file).read_bytes()))
                called[layer.origin] = callee(texts[file], layer.origin)
        watched = captured.Run(str(job.path), {file: (now, now) for file, now in texts.items()})
        for way, mapping in (
            ("static", align(source, without_origins(model))),
            ("capture", align(source, model, watched)),
        ):
            for judged in judge(one.name, model, mapping, source, str(job.path), called):
                tally.counts[way, judged.kind, judged.verdict] += 1
                counts = judged.kind in ("own", "ready-made") or judged.verdict == "wrong"
                if way == "static" and judged.verdict != "right" and counts:
                    tally.causes[judged.cause] += 1
                    misses.append(judged)
    return misses


def _why(failure: str) -> str:
    """The kind of a failure, without what is particular to the program."""
    error = re.search(r"\b(\w*(?:Error|Exception|Interrupt|UsedUp))\b:?", failure)
    if error is None:
        return failure.split(":")[0] or "no model was built"
    rest = failure[error.end() :].strip()
    if "would be downloaded" in rest:
        return "needs a download"
    if missing := re.search(r"^(?:No module named '([\w]+)|([\w]+)[\w.]* is not available)", rest):
        return f"needs {missing[1] or missing[2]}"
    return error[1]


def _absolute(model: ModelSummary, root: Path) -> ModelSummary:
    """Origins as absolute paths in the project's own folder."""
    import dataclasses

    def moved(origin: Origin) -> Origin:
        return dataclasses.replace(origin, file=str(root / origin.file))

    def placed(layer: ModelLayer) -> ModelLayer:
        return dataclasses.replace(
            layer,
            origin=moved(layer.origin) if layer.origin else None,
            callers=tuple(moved(caller) for caller in layer.callers),
            inner=tuple(placed(one) for one in layer.inner),
        )

    return dataclasses.replace(model, layers=tuple(placed(layer) for layer in model.layers))


# Printing


def table(rows: Sequence[Row]) -> str:
    """The figures for people."""
    lines = [
        f"{'':10} {'':5} {'programs':>9} {'ran':>5} {'models':>7} {'layers':>7} {'sites':>6} {'lines':>6} "
        f"{'right':>6} {'wrong':>6} {'ambig.':>6} {'missing':>7}  {'precision':>9} {'recall':>8}"
    ]
    for name, part, tally in rows:
        head = f"{name:10} {part:5} {tally.programs:9} {tally.ran:5} {tally.models:7} {tally.layers:7} {tally.sites:6}"
        for way, start in (("static", head), ("capture", f"{'with capture':>{len(head)}}")):
            lines.append(
                f"{start} {tally.count(way):6} {tally.count(way, 'right'):6} {tally.wrong(way):6} "
                f"{tally.count(way, 'ambiguous'):6} {tally.count(way, 'missing'):7}  "
                f"{_share(tally.precision(way)):>9} {_share(tally.recall(way)):>8}"
            )
        inserted, elsewhere = tally.left_out("inserted"), tally.left_out("elsewhere")
        lines.append(
            f"{'':16} not counted: {inserted} input layers that Keras inserted, "
            f"{elsewhere} layers that no line of the project constructs"
        )
    return "\n".join(lines)


def _share(value: float | None) -> str:
    return "–" if value is None else f"{value:.2%}"


def figures(rows: Sequence[Row]) -> tuple[dict[str, float], dict[str, tuple[str, float]]]:
    """The figures and goals of the result file."""
    found: dict[str, float] = {}
    goals: dict[str, tuple[str, float]] = {}
    for name, part, tally in rows:
        prefix = f"{name}, {part}"
        found[f"{prefix}, programs"] = tally.programs
        found[f"{prefix}, programs that ran"] = tally.ran
        found[f"{prefix}, models"] = tally.models
        found[f"{prefix}, layers"] = tally.layers
        found[f"{prefix}, sites"] = tally.sites
        for way in ("static", "capture"):
            found[f"{prefix}, {way}, layers that count"] = tally.count(way)
            for verdict in ("right", "wrong", "ambiguous", "missing"):
                found[f"{prefix}, {way}, {verdict}"] = tally.count(way, verdict)
            for measure_, value in (("precision", tally.precision(way)), ("recall", tally.recall(way))):
                if value is not None:
                    found[f"{prefix}, {way}, {measure_}"] = value
                    goals[f"{prefix}, {way}, {measure_}"] = (
                        ">=",
                        GOALS[measure_] if way == "static" else 1.0,
                    )
    return found, goals


def misses_text(
    found: Sequence[tuple[str, Half, Job, list[Judged]]], tallies: dict[tuple[str, Half], Tally]
) -> str:
    """The misses by cause: with their lines for the dev halves, counted for the test halves."""
    lines = ["# Misses of the static mapping", ""]
    for (name, part), tally in sorted(tallies.items()):
        lines += [f"## {name}, {part}", ""]
        lines += [f"- {count} × {cause}" for cause, count in tally.causes.most_common()]
        lines += [f"- {count} programs gave no model: {why}" for why, count in tally.stopped.most_common()]
        lines.append("")
        if part == "test":
            continue
        for set_name, of, job, misses in found:
            if (set_name, of) != (name, part) or not misses:
                continue
            lines += [f"### {job.name}", ""]
            lines += [_miss_line(job, miss) for miss in misses]
            lines.append("")
    return "\n".join(lines)


def _miss_line(job: Job, miss: Judged) -> str:
    layer = miss.layer
    path = "".join(f"[{index}]" for index in layer.path)
    truth = _place(job, layer.origin.file, layer.origin.line) if layer.origin else "no line"
    given = _place(job, miss.given.file or str(job.path), miss.given.span.line) if miss.given else miss.said
    return f"- {miss.cause}: {miss.model}{path} {layer.class_name} {layer.name!r} made at {truth}; static: {given}"


def _place(job: Job, file: str, line: int) -> str:
    path = Path(file)
    return f"{path.relative_to(job.root) if path.is_relative_to(job.root) else path.name}:{line + 1}"


def say(text: str) -> None:
    print(text, file=sys.stderr, flush=True)


def chosen_sets(options: argparse.Namespace) -> list[Set]:
    """The sets that were asked for, with the programs that were."""
    sets = [fixtures()]
    if options.guider:
        halves: dict[str, Half] = {}
        if options.halves:
            with options.halves.open(encoding="utf-8", newline="") as file:
                halves = {
                    row["id"]: "dev" if row["half"] == "dev" else "test" for row in csv.DictReader(file)
                }
        sets.append(guider(options.guider.absolute(), halves))
    if options.keras_io:
        sets.append(keras_io(folder.absolute() for folder in options.keras_io))
    return [
        Set(
            one.name,
            tuple(
                (job, part)
                for job, part in one.jobs
                if re.search(options.only, job.name) and options.half in (None, part)
            ),
        )
        for one in sets
    ]


def write(file: Path, rows: Sequence[Row], misses: str, versions: dict[str, str]) -> None:
    """Write the figures, and the misses beside them; print the goals that are not met."""
    numbers, goals = figures(rows)
    missed = [f"{name}: {numbers[name]:.2%}" for name, (_, goal) in goals.items() if numbers[name] < goal]
    print("Goals not met:" if missed else "All goals are met.", *missed, sep="\n  ")
    result = {
        "figures": numbers,
        "goals": goals,
        "machine": {
            "system": platform.platform(),
            "processor": platform.processor() or platform.machine(),
            "cores": os.cpu_count(),
        },
        "versions": {"python": platform.python_version(), **versions},
    }
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(json.dumps(result, indent=2) + "\n", encoding="utf-8")
    beside = file.with_name("mapping-misses.md")
    beside.write_text(misses, encoding="utf-8")
    print(f"misses by cause: {beside}")


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--guider", type=Path, help="a copy of GUIDER's replication package")
    parser.add_argument("--halves", type=Path, help="CSV with the columns id and half of GUIDER's programs")
    parser.add_argument(
        "--keras-io", type=Path, nargs="*", default=[], help="copies of keras-io, or of its guides"
    )
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1, help="programs that run at a time")
    parser.add_argument(
        "--only", default="", help="regular expression that the names of the programs contain"
    )
    parser.add_argument("--half", choices=("dev", "test", "all"), help="only one half")
    parser.add_argument("--reuse", action="store_true", help="runs by other sources of the engine will do")
    parser.add_argument("--output", type=Path, default=Path("build/bench/mapping.json"))
    options = parser.parse_args()
    cache = Path(os.environ.get("GUIDER_BENCH_CACHE") or Path.home() / ".cache" / "guider-bench")
    captures = Captures(cache, Limits(), reuse=options.reuse)
    sets = chosen_sets(options)
    tallies: dict[tuple[str, Half], Tally] = {}
    found: list[tuple[str, Half, Job, list[Judged]]] = []
    versions: dict[str, str] = {}
    for one in sets:
        runs = asyncio.run(captures.all([job for job, _ in one.jobs], options.jobs, say))
        for (job, part), run in zip(one.jobs, runs, strict=True):
            versions |= run.record.versions if run.record is not None else {}
            tally = tallies.setdefault((one.name, part), Tally())
            found.append((one.name, part, job, measure(job, run, tally)))
    rows: list[Row] = [(name, part, tally) for (name, part), tally in sorted(tallies.items())]
    for one in sets:
        parts = [tally for (name, _), tally in tallies.items() if name == one.name]
        if len(parts) > 1:
            rows.append((one.name, "both", sum(parts, Tally())))
    print(table(rows))
    write(options.output, rows, misses_text(found, tallies), versions)


if __name__ == "__main__":
    main()
