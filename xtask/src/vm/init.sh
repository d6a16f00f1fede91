#!/usr/bin/busybox sh
# The guest's first process: mounts what tools expect, makes an XFS of the first disk, runs the
# command in it until $limit seconds after the kernel's start, and leaves /out as a tar on the second
# disk, which has no filesystem.

/usr/bin/busybox --install -s 2>/dev/null
export PATH=/usr/sbin:/usr/bin:/sbin:/bin HOME=/root

mount -t proc proc /proc
mount -t sysfs sysfs /sys
mount -t devtmpfs devtmpfs /dev
mkdir /dev/pts /dev/shm
mount -t devpts devpts /dev/pts
mount -t tmpfs tmpfs /dev/shm
mount -t tracefs tracefs /sys/kernel/tracing
mount -t securityfs securityfs /sys/kernel/security
mount -t bpf bpf /sys/fs/bpf

# Those that are built in have no file.
for module in virtio_pci virtio_blk xfs; do
    modprobe -q "$module"
done

if mkfs.xfs -q /dev/vda && mount -t xfs /dev/vda /mnt; then
    (cd /mnt && exec sh /command) >/out/stdout 2>/out/stderr &
    command=$!
    read -r up _ </proc/uptime
    { sleep $((limit - ${up%.*})) && : >/out/timed-out && kill $command; } &
    wait $command
    echo $? >/out/status
fi
dmesg >/out/dmesg
tar -cf /dev/vdb -C /out .
# The command may have unmounted it.
umount /mnt 2>/dev/null
poweroff -f
