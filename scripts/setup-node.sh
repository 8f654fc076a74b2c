#!/bin/sh
# Install the client's packages (node_modules), exactly as locked.
set -eu
cd "$(dirname "$0")/.."
. scripts/common.sh

stamp=node_modules/.set-up
wanted=$(fingerprint package.json package-lock.json scripts/setup-node.sh)
up_to_date $stamp "$wanted" && exit 0

version=$(node --version 2>/dev/null || true)
if ! node -e 'const [major, minor] = process.versions.node.split("."); process.exit(major > 20 || (major == 20 && minor >= 19) ? 0 : 1)' 2>/dev/null; then
    fail "Node 20.19 or newer is needed, found: ${version:-none}" "Install one and put it on PATH, then try again."
fi
command -v npm >/dev/null 2>&1 || fail "npm is missing" "It usually comes with Node (Debian: apt-get install npm)."

say "[1/1] Packages of the VS Code client (Node $version)"
npm ci --no-fund --no-audit --loglevel=error >/dev/null
printf '%s' "$wanted" >$stamp
