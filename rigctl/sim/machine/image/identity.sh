#!/bin/sh
# Gives a Debian root the identity of Ubuntu 22.04, which is what the roles are written for, and says so where people
# look: /etc/issue and /etc/motd. A true Ubuntu root is left as it is.
set -eu
. /usr/lib/os-release
[ "$ID" = ubuntu ] && exit 0
real="$PRETTY_NAME"
# An upgrade of base-files would bring the real identity back.
for file in /usr/lib/os-release /etc/issue /etc/issue.net; do
  dpkg-divert --quiet --local --no-rename --divert "$file.distrib" --add "$file"
done
# The real name must not stand in this file: Ansible takes a machine for Debian wherever it finds that word here.
cat >/usr/lib/os-release <<END
PRETTY_NAME="Ubuntu 22.04.4 LTS"
NAME="Ubuntu"
VERSION_ID="22.04"
VERSION="22.04.4 LTS (Jammy Jellyfish)"
VERSION_CODENAME=jammy
ID=ubuntu
ID_LIKE=debian
UBUNTU_CODENAME=jammy
VARIANT="Simulated rig (rigctl sim)"
VARIANT_ID=rigctl-sim
END
cat >/etc/lsb-release <<END
DISTRIB_ID=Ubuntu
DISTRIB_RELEASE=22.04
DISTRIB_CODENAME=jammy
DISTRIB_DESCRIPTION="Ubuntu 22.04.4 LTS"
END
say="Simulated rig (rigctl sim): no hardware; $real with the identity of Ubuntu 22.04"
echo "$say" | tee /etc/issue /etc/issue.net >/etc/motd
cat >/usr/bin/lsb_release <<'END'
#!/bin/sh
. /etc/lsb-release
short=; what=v
for word in "$@"; do
  case "$word" in
    -s | --short) short=1 ;;
    -sc | -cs) short=1; what=c ;;
    -sr | -rs) short=1; what=r ;;
    -si | -is) short=1; what=i ;;
    -sd | -ds) short=1; what=d ;;
    -[cridav]) what="${word#-}" ;;
    --codename) what=c ;;
    --release) what=r ;;
    --id) what=i ;;
    --description) what=d ;;
    --all) what=a ;;
  esac
done
say() { if [ -n "$short" ]; then echo "$2"; else printf '%s:\t%s\n' "$1" "$2"; fi; }
case "$what" in
  v) echo "No LSB modules are available." >&2 ;;
  i) say "Distributor ID" "$DISTRIB_ID" ;;
  d) say Description "$DISTRIB_DESCRIPTION" ;;
  r) say Release "$DISTRIB_RELEASE" ;;
  c) say Codename "$DISTRIB_CODENAME" ;;
  a)
    say "Distributor ID" "$DISTRIB_ID"
    say Description "$DISTRIB_DESCRIPTION"
    say Release "$DISTRIB_RELEASE"
    say Codename "$DISTRIB_CODENAME"
    ;;
esac
END
chmod 0755 /usr/bin/lsb_release
# Ubuntu gives every login the administrator's programs.
echo 'PATH="/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"' >/etc/environment
