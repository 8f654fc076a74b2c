"""The work of the reading process (see `guider_ls.analysis.reader`), and its main loop.

It answers one request after the other. All it imports it imports for the first request that needs it: the server
imports this module, too, for the names of the functions.
"""

from __future__ import annotations

import gc
import os
import pickle
import sys
import threading
import traceback
from collections.abc import Callable, Mapping
from pathlib import Path
from queue import SimpleQueue
from typing import IO, TYPE_CHECKING, Any

from guider_ls.errors import GuiderError

if TYPE_CHECKING:
    from guider_engine.wire import CaptureRecord, ModelSummary
    from guider_ls.mapping.mapping import Mapping as Alignment
    from guider_ls.source.notebook import Combined
    from guider_ls.source.sites import SourceMap

HEADER = 8
"""Bytes before each message that say its length."""


class Defect(Exception):
    """A bug in the work; its text is the traceback."""


def read(
    program: Callable[[], Combined],
    path: Path | None,
    root: Path | None,
    overlays: Mapping[str, str],
    model: ModelSummary | None,
    capture: CaptureRecord | None,
) -> tuple[SourceMap, Alignment | None]:
    """Read a program, and align it with a model if there is one.

    Args:
        program: makes the text.
        path: see `guider_ls.project.reading.read`.
        root: see there.
        overlays: see there.
        model: the layers of the model.
        capture: the run that the model was captured from, if it was.

    Raises:
        InputError: code ``program-syntax``.
    """
    from guider_ls.project.reading import read
    from guider_ls.source.notebook import in_cells

    combined = program()
    source = in_cells(read(combined.text, path, root, overlays), combined.cells)
    texts = {**overlays, str(path): combined.text}
    return source, None if model is None else align(source, model, capture, texts)


def align(
    source: SourceMap, model: ModelSummary, capture: CaptureRecord | None, overlays: Mapping[str, str]
) -> Alignment:
    """Align what was read with a model; ``overlays`` has the texts of open documents, that of the program too."""
    from guider_ls.mapping.align import align
    from guider_ls.project.ran import ran

    return align(source, model, ran(capture, model, overlays) if capture is not None else None)


def main() -> None:
    """Answer the requests on standard input until it is closed; that ends the process, whatever it is doing."""
    answers = os.fdopen(os.dup(1), "wb")
    # Whatever prints must not end up between the answers.
    os.dup2(2, 1)
    sys.stdout = sys.stderr
    requests: SimpleQueue[bytes] = SimpleQueue()
    threading.Thread(target=_receive, args=(sys.stdin.buffer, requests), daemon=True).start()
    # What a request leaves behind is young; trees are old, many, and in no cycle.
    gc.disable()
    while True:
        answer = _answer(requests.get())
        answers.write(len(answer).to_bytes(HEADER, "big") + answer)
        answers.flush()
        del answer
        gc.collect(0)


def _receive(stream: IO[bytes], requests: SimpleQueue[bytes]) -> None:
    while (header := stream.read(HEADER)) and (body := stream.read(int.from_bytes(header, "big"))):
        requests.put(body)
    os._exit(0)


def _answer(request: bytes) -> bytes:
    """The result and nothing, or nothing and the error."""
    result: Any = None
    error: Exception | None = None
    try:
        work, arguments = pickle.loads(request)
        result = work(*arguments)
    except GuiderError as problem:
        error = problem
    except Exception:
        error = Defect(traceback.format_exc())
    return pickle.dumps((result, error), pickle.HIGHEST_PROTOCOL)
