"""Open an example in VS Code, in the browser, with the extension installed: demo_vscode.py NAME."""

from __future__ import annotations

import signal
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))

from tests.e2e.code_server import CodeServer  # noqa: E402


def main(name: str) -> None:
    """Serve until Ctrl-C."""
    folder = ROOT / "build/demo" / name
    if not (folder / "model.keras").exists():
        subprocess.run([ROOT / "scripts/demo.sh", name], check=True)
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    with CodeServer(ROOT / "build/demo/vscode") as server:
        print(f"Open {server.url(folder)}", flush=True)
        print("and there train.py. Ctrl-C ends.", flush=True)
        try:
            signal.pause()
        except KeyboardInterrupt:
            print()


if __name__ == "__main__":
    main(sys.argv[1])
