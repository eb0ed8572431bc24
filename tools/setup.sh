#!/bin/sh
# Makes a fresh Debian (12 or newer) or Ubuntu (24.04 or newer) ready for `make demo` and `make test`:
#   tools/setup.sh            system packages and .venv
#   tools/setup.sh python     .venv alone (enough for `make lint`)
#   tools/setup.sh tests      what the tests need besides: Chromium, and a PostgreSQL server's programs (none is left running)
#   tools/setup.sh --force    install all of .venv again
# Installs only what is missing; a call that finds everything in place ends at once.
# PYTHON=…: the interpreter for .venv (3.11 or newer).
set -eu
cd "$(dirname "$0")/.."
PATH="$PATH:/usr/sbin:/sbin"

say() { printf 'setup: %s\n' "$*"; }
die() {
    printf 'error: %s\nhint: %s\n' "$1" "$2" >&2
    exit 2
}
as_root() {
    if [ "$(id -u)" = 0 ]; then
        "$@"
    else
        command -v sudo >/dev/null 2>&1 || die "system packages are missing and there is no sudo" "run as root, or install: $missing"
        sudo "$@"
    fi
}

# What is looked for (a command, or a file where it has a slash) : the package that brings it.
# Recommended packages are not installed, so what podman and gcc only recommend is listed too.
system_needs='
podman:podman
runc:runc
/usr/lib/podman/netavark:netavark
/usr/lib/podman/aardvark-dns:aardvark-dns
iptables:iptables
newuidmap:uidmap
/etc/containers/policy.json:golang-github-containers-common
mmdebstrap:mmdebstrap
apt-ftparchive:apt-utils
dpkg-scanpackages:dpkg-dev
ssh:openssh-client
git:git
make:make
gcc:gcc
/usr/include/stdlib.h:libc6-dev
/etc/ssl/certs/ca-certificates.crt:ca-certificates
'

missing=''
note_missing() {
    for need in $system_needs; do
        thing=${need%%:*}
        package=${need##*:}
        case $thing in
            /*) [ -e "$thing" ] || missing="$missing $package" ;;
            *) command -v "$thing" >/dev/null 2>&1 || missing="$missing $package" ;;
        esac
    done
}

# Debian's PostgreSQL makes a cluster and starts it unless it is told not to; the tests start a server of their own.
# Ubuntu has Chromium as a snap alone, which does not run everywhere: there any Chromium or Chrome on the path will do.
test_needs() {
    if ! command -v chromium >/dev/null 2>&1 && ! command -v google-chrome >/dev/null 2>&1; then
        missing="$missing chromium"
    fi
    for server in /usr/lib/postgresql/*/bin/initdb; do
        [ ! -x "$server" ] || return 0
    done
    if [ ! -e /etc/postgresql-common/createcluster.conf ]; then
        as_root mkdir -p /etc/postgresql-common
        printf 'create_main_cluster = false\n' | as_root tee /etc/postgresql-common/createcluster.conf >/dev/null
    fi
    missing="$missing postgresql"
}

# A Python with venv and pip's bootstrap; Debian splits those off, so asking for the version alone is not enough.
# 3.11 to 3.13 are what ansible-core supports; a newer one is taken only where there is nothing else.
find_python() {
    for range in '(3,11) <= v < (3,14)' 'v >= (3,14)'; do
        for candidate in ${PYTHON:-} python3 python3.13 python3.12 python3.11 /usr/bin/python3; do
            if "$candidate" -c "import ensurepip, sys, venv; v = sys.version_info[:2]; sys.exit(not ($range))" 2>/dev/null; then
                printf '%s\n' "$candidate"
                return
            fi
        done
    done
    return 1
}

install_packages() {
    command -v apt-get >/dev/null 2>&1 || die "no apt-get here, and these are missing:$missing" \
        "use Debian 12 or Ubuntu 24.04 or newer, or install them by your own means"
    say "installing system packages:$missing"
    as_root env DEBIAN_FRONTEND=noninteractive apt-get -qq -o DPkg::Lock::Timeout=600 update
    # shellcheck disable=SC2086 # one word a package
    as_root env DEBIAN_FRONTEND=noninteractive apt-get -qq -y -o DPkg::Lock::Timeout=600 -o Dpkg::Use-Pty=0 \
        install --no-install-recommends $missing >/dev/null
}

system() {
    note_missing
    [ "$part" != tests ] || test_needs
    find_python >/dev/null || missing="$missing python3 python3-venv"
    [ -z "$missing" ] || install_packages
}

python() {
    found=$(find_python) || die "no Python 3.11 or newer with venv" "apt-get install python3-venv, or name one: PYTHON=python3.12 make …"
    wanted=$(cat requirements.txt pyproject.toml tools/setup.sh | sha256sum)
    if [ -z "$force" ] && [ "$(cat .venv/setup-stamp 2>/dev/null)" = "$wanted" ] && .venv/bin/python -c '' 2>/dev/null; then
        return
    fi
    if ! .venv/bin/python -m pip --version >/dev/null 2>&1; then
        say "creating .venv with $("$found" --version)"
        "$found" -m venv --clear .venv
    fi
    say "installing the locked requirements"
    .venv/bin/python -m pip install --quiet --disable-pip-version-check --require-hashes -r requirements.txt
    # hatchling is among the requirements: no second, isolated environment has to be downloaded.
    .venv/bin/python -m pip install --quiet --disable-pip-version-check --no-deps --no-build-isolation --editable .
    printf '%s\n' "$wanted" >.venv/setup-stamp
}

force=''
part=all
for word in "$@"; do
    case $word in
        --force) force=yes ;;
        python | system | tests) part=$word ;;
        *) die "unknown word: $word" "tools/setup.sh [system|python|tests] [--force]" ;;
    esac
done
[ "$part" = python ] || system
[ "$part" = system ] || python
