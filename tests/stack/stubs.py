"""Stand-ins for NVIDIA's container toolkit and for a container runtime."""

CONTAINER_TOOLKIT = r"""set -eu
build=$(mktemp -d)
mkdir -p "$build/DEBIAN" "$build/usr/bin" /srv/stub
cat > "$build/DEBIAN/control" <<'END'
Package: nvidia-container-toolkit
Version: 1.17.8-1
Architecture: amd64
Maintainer: nobody <nobody@localhost>
Description: stand-in
END
cat > "$build/usr/bin/nvidia-ctk" <<'END'
#!/bin/sh
# nvidia-ctk cdi generate --output=FILE
out=${3#--output=}
mkdir -p "$(dirname "$out")"
{
  echo 'cdiVersion: 0.5.0'
  echo 'kind: nvidia.com/gpu'
  echo "  - containerPath: /usr/lib/x86_64-linux-gnu/libcuda.so.$(cat /sys/module/nvidia/version)"
} > "$out"
END
chmod 755 "$build/usr/bin/nvidia-ctk"
dpkg-deb --build "$build" /srv/stub/nvidia-container-toolkit.deb > /dev/null
cd /srv/stub
size=$(stat -c %s nvidia-container-toolkit.deb)
sum=$(sha256sum nvidia-container-toolkit.deb | cut -d' ' -f1)
cp "$build/DEBIAN/control" Packages
printf 'Filename: ./nvidia-container-toolkit.deb\nSize: %s\nSHA256: %s\n' "$size" "$sum" >> Packages
cat > /usr/local/bin/podman <<'END'
#!/bin/sh
# podman run --rm --device nvidia.com/gpu=all IMAGE COMMAND…; an image called blind sees no card
case $5 in
  *blind*) echo "NVIDIA-SMI has failed because it couldn't communicate with the NVIDIA driver." ; exit 9 ;;
esac
shift 5
exec "$@"
END
chmod 755 /usr/local/bin/podman
"""
