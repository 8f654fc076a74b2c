"""The run that a model was captured from, as the mapper needs it: what ran, and what its files are now."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from guider_engine.wire import CaptureRecord, ModelSummary
from guider_ls.errors import InputError
from guider_ls.mapping.captured import Run
from guider_ls.project.captures import source_copies, when
from guider_ls.source.decode import decode

_NOTHING: Mapping[str, str] = {}


def ran(record: CaptureRecord, model: ModelSummary, overlays: Mapping[str, str] = _NOTHING) -> Run:
    """The run of a capture. Reads files: not for an event loop.

    Args:
        record: of the run.
        model: the one of its models that is localized.
        overlays: texts of open documents, by absolute path; they count before the files.
    """
    texts = {}
    for path, copy in source_copies(record).items():
        then = _text(copy)
        now = overlays.get(path, _text(Path(path)))
        if then is not None and now is not None:
            texts[path] = then, now
    others = tuple((other.name, other.model) for other in record.models if other.model != model)
    return Run(record.program.path, texts, record.strays, others)


def made(record: CaptureRecord | None, modified: float | None) -> str:
    """When a model was made, for people; empty where that is not known.

    Args:
        record: of the run that it was captured from, if it was.
        modified: when its file was written, in seconds since the epoch, if it has one.
    """
    if record is not None:
        return when(record.started + record.seconds)
    return when(modified) if modified else ""


def _text(path: Path) -> str | None:
    try:
        return decode(path.read_bytes())
    except (OSError, InputError):
        return None
