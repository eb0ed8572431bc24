#!/bin/sh
# Turns a plain root file system into a simulated rig. Runs once, as root, inside a container without a network;
# /mnt is the folder `machine`, read-only. RIGSIM_PLATFORM: what the rig shall be, such as ubuntu-22.04; RIGSIM_WORLD:
# the package archive whose real packages were fetched into the pool, empty for stand-ins.
set -eu
export DEBIAN_FRONTEND=noninteractive LC_ALL=C.UTF-8
machine=/mnt
lib=/usr/local/lib/rigsim
built=/tmp/built
archives() { (cd "$machine" && python3 -m packages.build --platform "$RIGSIM_PLATFORM" "$@"); }
step() { echo "· $*"; }

step "user, ssh, journal"
useradd --create-home --shell /bin/bash --uid 1000 --groups adm,sudo ops
install -d -m 0700 -o ops -g ops /home/ops/.ssh
echo 'ops ALL=(ALL) NOPASSWD:ALL' >/etc/sudoers.d/ops
chmod 0440 /etc/sudoers.d/ops
rm -f /etc/ssh/ssh_host_*
mkdir -p /etc/ssh/sshd_config.d /etc/systemd/journald.conf.d /var/lib/rigsim /var/log/journal
printf 'HostKey /etc/ssh/ssh_host_ed25519_key\nPasswordAuthentication no\nUseDNS no\n' >/etc/ssh/sshd_config.d/rigsim.conf
printf '[Journal]\nStorage=persistent\nSystemMaxUse=64M\nReadKMsg=no\nAudit=no\nRateLimitIntervalSec=0\n' >/etc/systemd/journald.conf.d/rigsim.conf
for unit in apt-daily.timer apt-daily-upgrade.timer dpkg-db-backup.timer e2scrub_all.timer fstrim.timer console-getty.service \
  systemd-udevd.service systemd-udev-trigger.service systemd-journald-audit.socket; do
  ln -sf /dev/null "/etc/systemd/system/$unit"
done

archives --os-release >/tmp/os-release
sh "$machine/image/identity.sh" /tmp/os-release

step "simulated hardware"
mkdir -p "$lib"
cp -r "$machine/hardware" "$machine/shims" "$machine/smi" "$lib/"
cp -r "$machine/boot/init" "$machine/boot/faults.d" "$lib/"
ln -s hardware/fault "$lib/fault"
for shim in "$lib"/shims/*; do
  if [ -x "$shim" ] && [ -f "$shim" ]; then ln -s "$shim" /usr/local/sbin/; fi
done
cp "$machine/boot/rigsim-hardware.service" /etc/systemd/system/
mkdir -p /etc/systemd/system/multi-user.target.wants
ln -sf /etc/systemd/system/rigsim-hardware.service /etc/systemd/system/multi-user.target.wants/
find "$lib" -name __pycache__ -prune -exec rm -rf {} +
python3 -m compileall -q "$lib/hardware/rigsim" "$lib/smi"

step "libraries of each driver version"
cd "$machine"
archives --versions >/tmp/versions
while read -r branch version; do
  mkdir -p "$built/libraries/$version"
  make -s -C nvml BRANCH="$branch" VERSION="$version" OUT="$built/libraries/$version"
  make -s -C cuda driver BRANCH="$branch" VERSION="$version" OUT="$built/libraries/$version"
done </tmp/versions

step "CUDA toolkits"
archives --toolkits >/tmp/toolkits
while read -r series; do
  make -s -C cuda toolkit TOOLKIT="$series" OUT="$built/cuda/$series"
done </tmp/toolkits

step "package archives"
mkdir -p "$built/programs" /srv/rigsim
cp "$machine/smi/nvidia-smi" "$built/programs/"
archives --world "$RIGSIM_WORLD" --out /srv/rigsim --built "$built"

step "gpu-burn repository"
git config --system --add safe.directory /srv/rigsim/git/gpu-burn.git
export GIT_AUTHOR_NAME="rigctl sim" GIT_AUTHOR_EMAIL=rigctl@localhost GIT_AUTHOR_DATE="2022-11-30T00:00:00Z"
export GIT_COMMITTER_NAME="$GIT_AUTHOR_NAME" GIT_COMMITTER_EMAIL="$GIT_AUTHOR_EMAIL" GIT_COMMITTER_DATE="$GIT_AUTHOR_DATE"
cp -r "$machine/gpu_burn_tree" "$built/gpu-burn"
git -C "$built/gpu-burn" init --quiet --initial-branch=master
git -C "$built/gpu-burn" add --all
git -C "$built/gpu-burn" commit --quiet --allow-empty --message="Simulated gpu-burn"
git clone --quiet --bare "$built/gpu-burn" /srv/rigsim/git/gpu-burn.git

step "kernel"
archives --kernel --out /srv/rigsim >/tmp/kernel
release=$(head -n 1 /tmp/kernel)
banner=$(sed -n 2p /tmp/kernel)
echo "$release" >"$lib/kernel-release"
# Where the archive's definition names no compiler, the kernel was built by the rig's own.
echo "Linux version $release (rigctl sim) ${banner:-(gcc version $(gcc -dumpfullversion)) #1 SMP}" >"$lib/kernel-banner"
gcc -shared -fPIC -O2 -Wall -Werror -DRELEASE="\"$release\"" -o "$lib/uname.so" "$machine/boot/uname.c"
gcc -shared -fPIC -O2 -Wall -Werror -o "$lib/clock.so" "$machine/boot/clock.c"
gcc -shared -fPIC -O2 -Wall -Werror -o "$lib/memory.so" "$machine/boot/memory.c" -lpthread
# Not the metas that lead to packages which were fetched and are not installed: rigs install those by themselves.
kernel_packages=$(find /srv/rigsim/pool/main -name 'linux-*.deb' ! -name 'linux-modules-*')
if [ -n "$RIGSIM_WORLD" ]; then kernel_packages=$(find /srv/rigsim/pool/main -name "linux-image-*.deb"); fi
# shellcheck disable=SC2086
dpkg --install $kernel_packages >/dev/null
echo "$lib/uname.so" >/etc/ld.so.preload

step "clean up"
rm -rf "$built" /tmp/versions /tmp/toolkits /tmp/kernel /tmp/os-release /var/lib/apt/lists/* /var/cache/apt/*.bin
# As on a machine that was installed long ago: whoever caches the index by its age must fetch it first.
touch -d 2022-01-01 /var/lib/apt/lists
rm -f /etc/machine-id /var/lib/dbus/machine-id
: >/etc/machine-id
