#!/bin/sh
# Leaves a simulated rig nothing but SSH: its package sources, wheels and sources gone, no route to anywhere.
set -eu
mv /srv/rigsim /srv/rigsim.away
umount /srv/wheelhouse
echo 'deb http://192.0.2.1/ubuntu jammy main restricted universe' >/etc/apt/sources.list
cat >/etc/systemd/system/cut-off.service <<'END'
[Service]
Type=oneshot
RemainAfterExit=yes
ExecStart=-/usr/sbin/ip route del default
[Install]
WantedBy=multi-user.target
END
systemctl enable --quiet --now cut-off.service
