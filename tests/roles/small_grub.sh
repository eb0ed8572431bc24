#!/bin/sh
# Gives a simulated rig a boot loader as small as a test of the role `reboot` needs: two kernels in a GRUB menu, GRUB's
# programs, and a unit that does at each start what GRUB does, so that `uname` says the kernel that was chosen.
set -eu
new=$1
old=$(uname -r)
grub=/boot/grub
lib=/usr/local/lib/small-grub
mkdir -p "$grub" "$lib" /etc/default/grub.d
for kernel in "$old" "$new"; do
  printf '#define _GNU_SOURCE\n#include <dlfcn.h>\n#include <string.h>\n#include <sys/utsname.h>\nint uname(struct utsname *u) {\n  int (*real)(struct utsname *) = dlsym(RTLD_NEXT, "uname");\n  int rc = real(u);\n  strcpy(u->release, "%s");\n  return rc;\n}\n' "$kernel" >"$lib/uname.c"
  gcc -shared -fPIC -o "$lib/$kernel.so" "$lib/uname.c"
done
printf '# GRUB Environment Block\n' >"$grub/grubenv"

cat >/usr/local/sbin/update-grub <<SCRIPT
#!/bin/sh
default=0
for part in /etc/default/grub.d/*.cfg; do if [ -e "\$part" ]; then . "\$part"; default=\$GRUB_DEFAULT; fi; done
if [ "\$default" = saved ]; then default='\${saved_entry}'; fi
{
  echo 'set default="\${next_entry}"'
  echo "set default=\"\$default\""
  echo "menuentry 'Ubuntu' --id 'gnulinux-simple' {"
  echo "  linux /boot/vmlinuz-$new"
  echo "}"
  echo "submenu 'Advanced options' --id 'advanced' {"
  for kernel in "$new" "$old"; do
    echo "menuentry 'Ubuntu, with Linux \$kernel' --id 'gnulinux-\$kernel' {"
    echo "  linux /boot/vmlinuz-\$kernel"
    echo "}"
  done
  echo "}"
} >$grub/grub.cfg
SCRIPT
cat >"$lib/set" <<SCRIPT
#!/bin/sh
sed -i "/^\$1=/d" $grub/grubenv
echo "\$1=\$2" >>$grub/grubenv
SCRIPT
printf '#!/bin/sh\nexec %s/set saved_entry "$1"\n' "$lib" >/usr/local/sbin/grub-set-default
printf '#!/bin/sh\nexec %s/set next_entry "$1"\n' "$lib" >/usr/local/sbin/grub-reboot
# A kernel that is named in `broken` hangs, and somebody cycles the power: the next start is the default's.
cat >"$lib/start" <<SCRIPT
#!/bin/sh
. /dev/stdin <<VALUES
\$(sed -n 's/^\([a-z_]*\)=\(.*\)/\1="\2"/p' $grub/grubenv)
VALUES
default=\$(sed -n 's/^set default="\(.*\)"/\1/p' $grub/grub.cfg | tail -n 1)
if [ "\$default" = '\${saved_entry}' ]; then default=\${saved_entry:-0}; fi
entry=\${next_entry:-\$default}
sed -i '/^next_entry=/d' $grub/grubenv
case "\$entry" in *"\$(cat $lib/broken 2>/dev/null || echo none)") entry=\$default ;; esac
case "\$entry" in
  0) kernel=$new ;;
  *) kernel=\${entry##*gnulinux-} ;;
esac
echo "$lib/\$kernel.so" >/etc/ld.so.preload
SCRIPT
chmod +x /usr/local/sbin/update-grub /usr/local/sbin/grub-set-default /usr/local/sbin/grub-reboot "$lib/set" "$lib/start"
cat >/etc/systemd/system/small-grub.service <<UNIT
[Unit]
DefaultDependencies=no
Before=sysinit.target ssh.service
[Service]
Type=oneshot
ExecStart=$lib/start
[Install]
WantedBy=sysinit.target
UNIT
systemctl --quiet enable small-grub.service
update-grub
