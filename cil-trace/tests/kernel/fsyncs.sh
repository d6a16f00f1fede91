# Makes, writes and syncs files by one process: where a machine is emulated, to start one takes
# longer than what it does.
# usage: fsyncs DIRECTORY COUNT
fsyncs() {
    local commands=() number
    for ((number = 1; number <= $2; number++)); do
        commands+=(-c "open -f $1/file-$number" -c "pwrite -q 0 4k" -c fsync -c close)
    done
    xfs_io "${commands[@]}"
}
