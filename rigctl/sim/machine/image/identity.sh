#!/bin/sh
# identity.sh FILE: gives a Debian root the identity of the Ubuntu release whose os-release FILE is, and says so where
# people look: /etc/issue and /etc/motd. A root that is what is asked for keeps its own; any other is refused.
set -eu
wanted_id=$(. "$1"; echo "$ID $VERSION_ID")
. /usr/lib/os-release
say="Simulated rig (rigctl sim): no hardware"
if [ "$ID $VERSION_ID" = "$wanted_id" ]; then
  echo "$say; $PRETTY_NAME" | tee /etc/issue /etc/issue.net >/etc/motd
  exit 0
fi
real="$PRETTY_NAME"
case "$ID $wanted_id" in
  "debian ubuntu "*) ;;
  *) echo "error: the image is $real, not $wanted_id" >&2; exit 1 ;;
esac
# An upgrade of base-files would bring the real identity back.
for file in /usr/lib/os-release /etc/issue /etc/issue.net; do
  dpkg-divert --quiet --local --no-rename --divert "$file.distrib" --add "$file"
done
# The real name must not stand in this file: Ansible takes a machine for Debian wherever it finds that word here.
{
  cat "$1"
  echo 'VARIANT="Simulated rig (rigctl sim)"'
  echo 'VARIANT_ID=rigctl-sim'
} >/usr/lib/os-release
. /usr/lib/os-release
cat >/etc/lsb-release <<END
DISTRIB_ID=Ubuntu
DISTRIB_RELEASE=$VERSION_ID
DISTRIB_CODENAME=$VERSION_CODENAME
DISTRIB_DESCRIPTION="$PRETTY_NAME"
END
echo "$say; $real with the identity of Ubuntu $VERSION_ID" | tee /etc/issue /etc/issue.net >/etc/motd
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
