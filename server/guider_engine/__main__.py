"""Entry of the engine process: run by file path with the interpreter of the project.

Written in the syntax of any Python 3, so that one too old says so instead of printing a syntax error.
"""

import os
import sys

TYPE_CHECKING = False  # typing itself is imported later: nothing may print before the channel is taken
if TYPE_CHECKING:
    from collections.abc import Callable

    from guider_engine.channel import Worker

OLDEST = (3, 10)


def main(session_factory: "Callable[[], Worker] | None" = None) -> None:
    """Serve until the server closes the channel; ``session_factory`` makes what does the work."""
    incoming, outgoing = take_channel()
    if sys.version_info < OLDEST:
        found = ".".join(str(part) for part in sys.version_info[:3])
        oldest = ".".join(str(part) for part in OLDEST)
        sys.exit(
            sys.executable + " is Python " + found + ", and the engine needs Python " + oldest + " or newer."
        )
    load_package()
    from guider_engine import channel

    channel.serve(incoming, outgoing, session_factory or channel.new_session)


def take_channel() -> "tuple[int, int]":
    """Keep standard input and output for the channel alone; return their private descriptors.

    From here on whatever runs in this process, and whatever it starts, reads an empty standard input and
    prints to standard error. The duplicates are not inherited by other programs.
    """
    incoming, outgoing = os.dup(0), os.dup(1)
    nothing = os.open(os.devnull, os.O_RDONLY)
    os.dup2(nothing, 0)
    os.close(nothing)
    os.dup2(2, 1)
    return incoming, outgoing


def load_package() -> None:
    """Make ``guider_engine`` importable, and nothing else that lies beside it or beside the running script."""
    import importlib.util
    from pathlib import Path

    folder = Path(__file__).resolve().parent
    beside = (folder, Path(sys.argv[0]).resolve().parent)
    sys.path[:] = [entry for entry in sys.path if Path(entry).resolve() not in beside]
    spec = importlib.util.spec_from_file_location(
        "guider_engine", folder / "__init__.py", submodule_search_locations=[str(folder)]
    )
    assert spec is not None
    assert spec.loader is not None
    package = importlib.util.module_from_spec(spec)
    sys.modules["guider_engine"] = package
    spec.loader.exec_module(package)


if __name__ == "__main__":
    main()
