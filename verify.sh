#!/usr/bin/env bash
# Checks everything this project promises, in an environment of its own. `./verify.sh --quick` for the inner loop.
# Needs Python >= 3.11 and a network that reaches a Python package index; PG_BINDIR or DATABASE_URL selects the
# PostgreSQL that the tests use, otherwise it is the embedded one.
set -euo pipefail
cd "$(dirname "$0")"

find_python() {
    for candidate in "${PYTHON:-}" python3 python3.13 python3.12 python3.11; do
        if [ -n "$candidate" ] && command -v "$candidate" >/dev/null 2>&1 &&
            "$candidate" -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null; then
            command -v "$candidate"
            return
        fi
    done
    echo "verify.sh needs Python 3.11 or newer; set PYTHON to one" >&2
    return 1
}

python=$(find_python)
environment=.venv-verify
as_root() { [ "$(id -u)" -eq 0 ] && command -v apt-get >/dev/null 2>&1; }

if ! "$environment/bin/python" -c 'import pip' >/dev/null 2>&1; then
    rm -rf "$environment"
    if ! "$python" -m venv "$environment" >/dev/null 2>&1; then
        # Debian keeps the venv module in a package of its own.
        as_root || { echo "python3 -m venv failed: install your system's python3-venv package" >&2; exit 1; }
        apt-get update -qq && DEBIAN_FRONTEND=noninteractive apt-get install -y -qq python3-venv >/dev/null
        rm -rf "$environment"
        "$python" -m venv "$environment"
    fi
fi

# Installed again only when what is to be installed has changed.
wanted=$(cat pyproject.toml "$environment/pyvenv.cfg" | sha256sum)
if [ "$(cat "$environment/installed" 2>/dev/null || true)" != "$wanted" ]; then
    "$environment/bin/python" -m pip install --quiet --disable-pip-version-check --upgrade pip
    "$environment/bin/python" -m pip install --quiet --disable-pip-version-check --editable '.[dev]'
    printf '%s' "$wanted" >"$environment/installed"
fi

# The tests start some hundreds of processes, each of which would else compile the sources anew.
unset PYTHONDONTWRITEBYTECODE
exec "$environment/bin/python" -m tests.verify "$@"
