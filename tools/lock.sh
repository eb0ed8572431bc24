#!/bin/sh
# Writes requirements.txt: one file for Python 3.11 to 3.13, with the hashes of every file of each release, no index named.
# uv resolves for all of them at once (pip-compile would need one file per Python); it runs from an environment of its own.
set -eu
cd "$(dirname "$0")/.."
[ -x .cache/lock/bin/uv ] || {
    .venv/bin/python -m venv .cache/lock
    .cache/lock/bin/python -m pip install --quiet uv
}
{
    # shellcheck disable=SC2016 # the backquotes are for the reader
    printf '%s\n' '# Locked by `make lock` from pyproject.toml: Python 3.11 to 3.13, hashes of every file of each release, no index named.' \
        '# torch is not in here: each rig gets its own from the pytorch role.'
    .cache/lock/bin/uv pip compile pyproject.toml --extra dev --extra fast --universal --python-version 3.11 --generate-hashes \
        --no-config --no-header --no-emit-index-url --no-emit-find-links --strip-extras --quiet
} >requirements.txt.new
mv requirements.txt.new requirements.txt
