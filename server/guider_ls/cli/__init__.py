"""The command line, ``guider-ls``.

Exit status: 0 done (a ranking, or an honest "no failure signal"); 2 wrong usage; 3 the input cannot be used; 4 the
environment, the engine or the user's code failed; 130 interrupted. Results go to standard output or to a file,
all else to standard error.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence

from guider_ls.cli.arguments import parse, wanted_format
from guider_ls.cli.console import prepare_streams, print_error, silence_stdout
from guider_ls.errors import GuiderError

INTERRUPTED = 130

__all__ = ["main"]


def main(argv: Sequence[str] | None = None) -> int:
    """Run a command; returns the exit status."""
    arguments = sys.argv[1:] if argv is None else list(argv)
    prepare_streams()
    try:
        return _run(parse(arguments))
    except GuiderError as error:
        print_error(error, wanted_format(arguments))
        return error.exit_status
    except KeyboardInterrupt:
        sys.stderr.write("Interrupted.\n")
        return INTERRUPTED
    except BrokenPipeError:  # the reader has seen enough, as `head` has
        silence_stdout()
        return 0


def _run(options: argparse.Namespace) -> int:
    # Each command imports what it needs: the server starts without the rest, the rest without the server.
    if options.command == "serve":
        from guider_ls.cli import serve

        return serve.run(options)
    if options.command == "map":
        from guider_ls.cli import map_program

        return map_program.run(options)
    if options.command == "doctor":
        from guider_ls.cli import doctor

        return doctor.run(options)
    from guider_ls.cli import localize

    return localize.run(options)
