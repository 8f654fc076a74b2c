"""``guider-ls serve``."""

from __future__ import annotations

import argparse


def run(options: argparse.Namespace) -> int:
    """Run the language server until its client goes."""
    from guider_ls.lsp.server import run_stdio, run_tcp

    if options.tcp is not None:
        run_tcp(*options.tcp)
    else:
        run_stdio()
    return 0
