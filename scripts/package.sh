#!/bin/sh
# Build dist/guider.vsix and the wheel; only what is older than its sources.
set -eu
cd "$(dirname "$0")/.."

newer_than() { [ ! -f "$1" ] || [ -n "$(find "$@" -newer "$1" -type f | head -n 1)" ]; }
mkdir -p dist

if newer_than dist/guider.vsix vscode-client/src package.json package-lock.json .vscodeignore LICENSE CHANGELOG.md README.md; then
    echo "Building dist/guider.vsix"
    npm --silent run package -- --out dist/guider.vsix >/dev/null
fi
wheel=$(ls dist/*.whl 2>/dev/null | head -n 1)
if newer_than "${wheel:-none}" server pyproject.toml LICENSE README.md; then
    echo "Building the wheel"
    rm -f dist/*.whl
    .venv/bin/python -m pip wheel --quiet --disable-pip-version-check --no-deps --no-build-isolation --wheel-dir dist .
fi
ls dist/*.vsix dist/*.whl
