#!/bin/sh
# Gives a simulated rig a boot loader as small as tests of new kernels need: a GRUB menu of the kernels in /boot, GRUB's
# programs, and what GRUB does at each start, so that `uname` says the kernel that was chosen. Its argument, which may be
# left out, is a kernel that is to lie in /boot beside the running one without a package.
set -eu
grub=/boot/grub
lib=/usr/local/lib/small-grub
at_boot=/var/lib/rigsim/at-boot
mkdir -p "$grub" "$lib" "$at_boot" /etc/default/grub.d
for kernel in "$(uname -r)" "$@"; do
  if [ ! -e "/boot/vmlinuz-$kernel" ]; then echo stand-in >"/boot/vmlinuz-$kernel"; fi
done
printf '# GRUB Environment Block\n' >"$grub/grubenv"
cat >"$lib/uname.c" <<'SOURCE'
#define _GNU_SOURCE
#include <string.h>
#include <sys/syscall.h>
#include <sys/utsname.h>
#include <unistd.h>
int uname(struct utsname *name) {
  int status = (int)syscall(SYS_uname, name);
  if (status == 0) strncpy(name->release, RELEASE, sizeof name->release - 1);
  return status;
}
SOURCE

cat >/usr/sbin/update-grub <<SCRIPT
#!/bin/sh
set -eu
GRUB_DEFAULT=0
for part in /etc/default/grub /etc/default/grub.d/*.cfg; do if [ -e "\$part" ]; then . "\$part"; fi; done
if [ "\$GRUB_DEFAULT" = saved ]; then GRUB_DEFAULT='\${saved_entry}'; fi
kernels=\$(ls /boot | sed -n 's/^vmlinuz-//p' | sort -rV)
for kernel in \$kernels; do
  if [ ! -e "$lib/\$kernel.so" ]; then
    gcc -shared -fPIC -DRELEASE="\"\$kernel\"" -o "$lib/\$kernel.so" "$lib/uname.c"
  fi
done
{
  echo 'set default="\${next_entry}"'
  echo "set default=\"\$GRUB_DEFAULT\""
  echo "menuentry 'Ubuntu' --id 'gnulinux-simple' {"
  echo "  linux /boot/vmlinuz-\${kernels%%
*}"
  echo "}"
  echo "submenu 'Advanced options' --id 'advanced' {"
  for kernel in \$kernels; do
    echo "menuentry 'Ubuntu, with Linux \$kernel' --id 'gnulinux-\$kernel-advanced' {"
    echo "  linux /boot/vmlinuz-\$kernel"
    echo "}"
  done
  echo "}"
} >$grub/grub.cfg
SCRIPT

cat >/usr/bin/grub-editenv <<SCRIPT
#!/bin/sh
set -eu
case "\$2" in
  set) name=\${3%%=*}; sed -i "/^\$name=/d" $grub/grubenv; echo "\$3" >>$grub/grubenv ;;
  unset) sed -i "/^\$3=/d" $grub/grubenv ;;
  list) grep = $grub/grubenv || true ;;
esac
SCRIPT
printf '#!/bin/sh\nexec grub-editenv - set "saved_entry=$1"\n' >/usr/sbin/grub-set-default
printf '#!/bin/sh\nexec grub-editenv - set "next_entry=$1"\n' >/usr/sbin/grub-reboot
chmod +x /usr/sbin/update-grub /usr/bin/grub-editenv /usr/sbin/grub-set-default /usr/sbin/grub-reboot

# A kernel that is named in `broken` hangs, and somebody cycles the power: the next start is the default's. An entry that
# the menu does not have is the first one. Sourced before the driver's module is loaded, which lies with its kernel.
cat >"$at_boot/00-small-grub" <<SCRIPT
value() { sed -n "s/^\$1=//p" $grub/grubenv; }
newest=\$(sed -n 's,^  linux /boot/vmlinuz-,,p' $grub/grub.cfg | head -n 1)
default=\$(sed -n 's/^set default="\(.*\)"/\1/p' $grub/grub.cfg | tail -n 1)
if [ "\$default" = '\${saved_entry}' ]; then default=\$(value saved_entry); fi
entry=\$(value next_entry)
entry=\${entry:-\$default}
sed -i '/^next_entry=/d' $grub/grubenv
chosen() {
  named=\${1##*gnulinux-}
  named=\${named%-advanced}
  if grep -q "vmlinuz-\$named\$" $grub/grub.cfg; then echo "\$named"; else echo "\$newest"; fi
}
kernel=\$(chosen "\$entry")
if [ "\$kernel" = "\$(cat $lib/broken 2>/dev/null)" ]; then kernel=\$(chosen "\$default"); fi
echo "$lib/\$kernel.so" >/etc/ld.so.preload
echo "\$kernel" >/run/rigsim/osrelease
SCRIPT
update-grub
