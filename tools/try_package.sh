#!/usr/bin/env bash
# try_package.sh FOLDER: installs the Debian packages in FOLDER into a bare root of this machine's release,
# as root, and compiles and runs README's first example there.
set -euo pipefail
folder=$1
suite=$(. /etc/os-release && echo "$VERSION_CODENAME")
# The archive that this machine itself installs from.
mirror=$(apt-get indextargets --format '$(REPO_URI)' "Codename: $suite" 'Component: main' | head -n 1)
root=$(mktemp -d)
leave() {
  umount "$root/proc" 2>/dev/null || true
  rm -rf --one-file-system "$root"
}
trap leave EXIT
chmod 755 "$root"
debootstrap --variant=minbase "$suite" "$root" "$mirror" >"$folder/debootstrap.log" 2>&1 || {
  cat "$folder/debootstrap.log"
  exit 1
}
mount -t proc proc "$root/proc"
cp /etc/resolv.conf "$root/etc/resolv.conf"
mkdir "$root/trial"
cp "$folder"/*.deb "$root/trial"
awk '/^```cpp/ { on = 1; next } /^```/ && on { exit } on' README.md >"$root/trial/first.cpp"
inside() { chroot "$root" env -i PATH=/usr/sbin:/usr/bin:/sbin:/bin HOME=/root DEBIAN_FRONTEND=noninteractive sh -ec "cd /trial; $1"; }
inside 'apt-get -q update && apt-get -q install -y --no-install-recommends ./*.deb g++ pkgconf' >"$folder/install.log" 2>&1 || {
  cat "$folder/install.log"
  exit 1
}
inside 'g++ -std=c++20 first.cpp -o first $(pkg-config --cflags --libs palimpsest) && ./first'
inside 'palimpsest-plan --list >/dev/null'
echo "installed on a bare $suite: README's first example compiles and runs"
