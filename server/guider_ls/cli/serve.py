"""``guider-ls serve``."""

from __future__ import annotations

import argparse
import gc


def run(options: argparse.Namespace) -> int:
    """Run the language server until its client goes."""
    # What is imported stays; to look through all of it again and again would make the start a fifth longer.
    gc.disable()
    from guider_ls.lsp.server import run_stdio, run_tcp

    gc.freeze()
    gc.enable()
    if options.tcp is not None:
        run_tcp(*options.tcp)
    else:
        run_stdio()
    return 0
