#!/bin/sh
# Build the server's wheel and dist/guider.vsix, which carries it; only what is older than its sources.
set -eu
cd "$(dirname "$0")/.."

newer_than() { [ ! -f "$1" ] || [ -n "$(find "$@" -name __pycache__ -prune -o -newer "$1" -type f -print | head -n 1)" ]; }
mkdir -p dist

wheel=$(ls dist/*.whl 2>/dev/null | head -n 1)
if newer_than "${wheel:-none}" server pyproject.toml LICENSE README.md; then
    echo "Building the wheel"
    rm -f dist/*.whl
    .venv/bin/python -m pip wheel --quiet --disable-pip-version-check --no-deps --no-build-isolation --wheel-dir dist .
fi
if newer_than dist/guider.vsix dist/*.whl vscode-client/src package.json package-lock.json .vscodeignore LICENSE CHANGELOG.md README.md; then
    echo "Building dist/guider.vsix"
    mkdir -p vscode-client/out
    rm -f vscode-client/out/*.whl
    cp dist/*.whl vscode-client/out/
    npm --silent run package -- --out dist/guider.vsix >/dev/null
fi
ls dist/*.vsix dist/*.whl
