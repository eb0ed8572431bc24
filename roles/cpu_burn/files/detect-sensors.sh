#!/bin/sh
# Looks for the chips whose drivers do not load by themselves, once, where the processor's own sensor is not there.
# What was found is kept; without that file it looks again.
set -eu
kept=/var/lib/gpu-rig/sensors-detected
loaded_at_boot=/etc/modules-load.d/gpu-rig-sensors.conf
mkdir -p "${kept%/*}"
if grep -qsxE 'k10temp|coretemp|zenpower' /sys/class/hwmon/hwmon*/name; then
  echo "The processor's sensor is there: nothing was detected." >"$kept"
  exit 0
fi
# On a kernel that is locked down (Secure Boot) it may not look at the ports, and says so.
sensors-detect --auto >"$kept.new" 2>&1 || echo "sensors-detect: exit status $?" >>"$kept.new"
modules=$(sed -n '/^#----cut here----/,/^#----cut here----/ { /^[a-z0-9_-]*$/ p }' "$kept.new")
if [ -n "$modules" ]; then
  printf '# Written by the role cpu_burn.\n%s\n' "$modules" >"$loaded_at_boot"
  for module in $modules; do
    modprobe "$module" || echo "modprobe $module: exit status $?" >>"$kept.new"
  done
fi
mv "$kept.new" "$kept"
tail -n 3 "$kept"
