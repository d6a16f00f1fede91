#!/usr/bin/env bash
# 200 x (create, write 4 KiB, fsync), sync, and on request unmount; the statistics are copied
# between two marks in the witness's trace, so that they can be held against it.
# usage: sequence.sh MOUNTPOINT STATS COPY MARKER [unmount]
set -euo pipefail
for number in {1..200}; do
    dd if=/dev/zero of="$1/file-$number" bs=4k count=1 conv=fsync status=none
done
sync -f "$1"
echo before-statistics >"$4"
cat "$2" >"$3"
echo after-statistics >"$4"
if [[ ${5:-} == unmount ]]; then umount "$1"; fi
