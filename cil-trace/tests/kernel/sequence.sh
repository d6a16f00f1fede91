#!/usr/bin/env bash
# 200 x (create, write 4 KiB, fsync), sync, and on request unmount; the statistics are copied
# between two marks in the witness's trace, so that they can be held against it.
# usage: sequence.sh MOUNTPOINT STATS COPY MARKER [unmount]
set -euo pipefail
source "$(dirname "$0")/fsyncs.sh"
fsyncs "$1" 200
sync -f "$1"
echo before-statistics >"$4"
cat "$2" >"$3"
echo after-statistics >"$4"
if [[ ${5:-} == unmount ]]; then umount "$1"; fi
