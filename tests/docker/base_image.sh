#!/bin/sh
# Makes the base of the kernel image on a machine without an image registry: a Docker engine that answers, and in it
# a bare Debian with Python. Needs root on Debian or Ubuntu; does only what is missing.
#
#   sh tests/docker/base_image.sh [NAME]     (default: debian-super:bookworm)
#
# Then: pytest-super image build --base debian-super:bookworm
set -eu

name=${1:-debian-super:bookworm}
packages=python3,python3-pip,python3-venv,git,ca-certificates

say() { echo "base image: $*"; }

install() {
    say "installing $*"
    apt-get update -qq
    DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends "$@" >/dev/null
}

engine_answers() { docker version >/dev/null 2>&1; }

wait_for_engine() {
    tries=0
    until engine_answers; do
        tries=$((tries + 1))
        if [ "$tries" -gt 60 ]; then
            say "dockerd did not answer within a minute; its last words:"
            tail -n 20 "$log"
            exit 1
        fi
        sleep 1
    done
}

start_engine() {
    log=$(mktemp /tmp/dockerd.XXXXXX.log)
    say "starting dockerd, which writes to $log"
    # In a session of its own, so that it outlives this script.
    setsid dockerd </dev/null >"$log" 2>&1 &
    wait_for_engine
}

command -v docker >/dev/null || install docker.io iptables
if ! engine_answers; then
    # The client may be there without the engine.
    command -v dockerd >/dev/null || install docker.io iptables
    start_engine
fi

if docker image inspect "$name" >/dev/null 2>&1; then
    say "$name is there"
    exit 0
fi

command -v mmdebstrap >/dev/null || install mmdebstrap debian-archive-keyring
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
say "making $name"
mmdebstrap --quiet --variant=minbase --include="$packages" bookworm "$folder/root.tar"
docker import "$folder/root.tar" "$name" >/dev/null
say "made $name"
