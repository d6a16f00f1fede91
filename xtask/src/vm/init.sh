#!/usr/bin/busybox sh
# The guest's first process: mounts what tools expect, makes an XFS of the first disk, runs the
# command in it, and leaves /out as a tar on the second disk, which has no filesystem.

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

if mkfs.xfs -q /dev/vda && mount -t xfs /dev/vda /mnt && cd /mnt; then
    sh /command >/out/stdout 2>/out/stderr
    echo $? >/out/status
fi
cd /
tar -cf /dev/vdb -C /out .
umount /mnt
poweroff -f
