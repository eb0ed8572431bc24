#!/bin/sh
# What a provisioning could change on a rig: packages with versions and marks, holds, the loaded driver, files.
set -eu
# shellcheck disable=SC2016 # the braces are dpkg's
dpkg-query -W -f '${Package} ${Version} ${db:Status-Abbrev}\n'
apt-mark showhold
cat /sys/module/nvidia/version 2>/dev/null || echo 'no driver is loaded'
cat /proc/sys/kernel/random/boot_id
find /etc /opt /usr/local /boot /var/lib/gpu-rig -type f ! -path '/usr/local/lib/rigsim/*' -print0 2>/dev/null |
    sort -z | xargs -0 sha256sum
