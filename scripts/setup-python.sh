#!/bin/sh
# Make .venv: the server and the engine (editable), TensorFlow and the tools that check and test.
set -eu
cd "$(dirname "$0")/.."
. scripts/common.sh

supported='import sys; sys.exit(not (3, 10) <= sys.version_info[:2] <= (3, 13))'

# find_python: the first supported Python, the user's choice ($PYTHON) first
find_python() {
    for candidate in ${PYTHON:-python3 python3.13 python3.12 python3.11 python3.10 python}; do
        if "$candidate" -c "$supported" >/dev/null 2>&1; then
            command -v "$candidate"
            return
        fi
    done
    found=$(${PYTHON:-python3} --version 2>&1 || true)
    fail "Python 3.10 to 3.13 is needed, found: ${found:-none}" \
        "Install one (Debian: apt-get install python3 python3-venv)" \
        "or name it: make setup PYTHON=/path/to/python3.12"
}

stamp=.venv/.set-up
wanted=$(fingerprint pyproject.toml requirements/*.txt scripts/setup-python.sh)
if up_to_date $stamp "$wanted" && .venv/bin/python -c "$supported" >/dev/null 2>&1; then
    exit 0
fi

say "[1/4] Python"
if .venv/bin/python -c "$supported" >/dev/null 2>&1; then
    say "      $(.venv/bin/python --version) in .venv"
else
    python=$(find_python)
    say "      $("$python" --version), $python"
    if ! "$python" -c 'import ensurepip, venv' >/dev/null 2>&1; then
        debian_install "python$("$python" -c 'import sys; print("%d.%d" % sys.version_info[:2])')-venv"
    fi
    rm -rf .venv
    "$python" -m venv .venv
fi

install() { .venv/bin/python -m pip install --quiet --disable-pip-version-check -c requirements/constraints.txt "$@"; }

say "[2/4] Tools: checks, tests, packaging"
install -r requirements/build.txt -r requirements/dev.txt
say "[3/4] TensorFlow (some 300 MB the first time)"
install -r requirements/tensorflow.txt
install --no-deps -r requirements/keras2.txt
say "[4/4] GUIDER's server and engine, from this folder"
install --no-build-isolation --editable .

printf '%s' "$wanted" >$stamp
say "Ready: .venv/bin/guider-ls"
