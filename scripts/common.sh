# Shared by the set-up scripts; sourced, with the repository's root as working directory.

say() { printf '%s\n' "$*"; }

fail() {
    printf '\nset-up stopped: %s\n' "$1" >&2
    shift
    for line in "$@"; do printf '  %s\n' "$line" >&2; done
    exit 1
}

# fingerprint FILE...: changes when one of the files does
fingerprint() { cat "$@" | cksum | tr -d ' \n'; }

# up_to_date STAMP VALUE: whether an earlier run finished with the same value
up_to_date() { [ -f "$1" ] && [ "$(cat "$1")" = "$2" ]; }

as_root() {
    if [ "$(id -u)" = 0 ]; then
        "$@"
    elif command -v sudo >/dev/null 2>&1; then
        sudo "$@"
    else
        fail "root is needed for: $*" "Run that command as root, then try again."
    fi
}

# debian_install PACKAGE...: through apt-get, where there is one
debian_install() {
    command -v apt-get >/dev/null 2>&1 || fail "missing: $*" "Install these packages (Debian's names), then try again."
    say "      installing Debian packages: $*"
    as_root apt-get update -qq
    as_root env DEBIAN_FRONTEND=noninteractive apt-get install -qq --yes --no-install-recommends "$@" >/dev/null
}
