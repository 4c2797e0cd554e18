#!/usr/bin/env bash
# Installs a package of Ponder in clean Debian roots by its declared dependencies alone, uses it as a person does, upgrades and removes it.
# As root, because it makes roots and mounts what they need.
#
# usage: clean_roots.sh CACHE_DIR DEB [BEFORE]    BEFORE is an earlier package; without one, DEB itself with a lower version stands for it
set -euo pipefail

cache=$1/roots
deb=$(readlink -f "$2")
before=${3:+$(readlink -f "$3")}
suites=${PONDER_SUITES_OF_DEBIAN:-bookworm trixie}
question="What is 347 + 589?"

say() { printf '\033[1m==> %s\033[0m\n' "$*"; }
fail() { printf 'clean_roots: %s\n' "$*" >&2; exit 1; }

[ "$(id -u)" -eq 0 ] || fail "only root can make roots"
for program in debootstrap Xvfb xdotool import identify; do command -v $program >/dev/null || fail "$program is missing"; done
# The archive that this computer uses, unless another one is named, as on Ubuntu.
archive=${PONDER_DEBIAN_ARCHIVE:-$(apt-get indextargets --format '$(REPO_URI)' 'Created-By: Packages' | grep -v security | head -1)}
work=$(mktemp -d)
pictures="$cache/pictures"
mkdir -p "$cache" "$pictures"
display=
started=()

finish() {
  local process root
  for process in "${started[@]}"; do kill "$process" 2>/dev/null || true; done
  for root in "$work"/*/; do
    for mounted in var/cache/apt/archives tmp/.X11-unix dev/shm dev/pts dev sys proc; do umount -l "$root$mounted" 2>/dev/null || true; done
  done
  # Nothing of this computer is below it any more, or it stays.
  grep -q " $work/" /proc/mounts || rm -rf "$work"
}
trap finish EXIT

# Each root is bootstrapped once and unpacked anew for every run.
clean_root() {
  local suite=$1 root="$work/$1"
  if [ ! -f "$cache/$suite.tar" ]; then
    say "$suite: bootstrapping from $archive"
    rm -rf "$cache/$suite"
    debootstrap --variant=minbase "$suite" "$cache/$suite" "$archive" >"$cache/$suite.log" 2>&1 || { tail -5 "$cache/$suite.log" >&2; fail "$suite could not be bootstrapped"; }
    tar -C "$cache/$suite" -cf "$cache/$suite.tar.part" .
    mv "$cache/$suite.tar.part" "$cache/$suite.tar"
    rm -rf "$cache/$suite"
  fi
  mkdir -p "$root"
  tar -C "$root" -xf "$cache/$suite.tar"
  mount -t proc proc "$root/proc"
  mount -t sysfs -o ro sysfs "$root/sys"
  mount -t tmpfs -o mode=755 tmpfs "$root/dev"
  for node in null zero full random urandom tty; do cp -a "/dev/$node" "$root/dev/"; done
  mkdir -p "$root/dev/shm" "$root/dev/pts" "$root/tmp/.X11-unix"
  mount -t tmpfs -o mode=1777 tmpfs "$root/dev/shm"
  mount --bind /tmp/.X11-unix "$root/tmp/.X11-unix"
  # Packages that other packages need are fetched once.
  mkdir -p "$cache/archives-$suite/partial"
  mount --bind "$cache/archives-$suite" "$root/var/cache/apt/archives"
  # The archive is asked as this computer asks it.
  cp /etc/apt/apt.conf.d/* "$root/etc/apt/apt.conf.d/" 2>/dev/null || true
  rm -f "$root"/etc/apt/apt.conf.d/docker-*
  cp /etc/resolv.conf "$root/etc/resolv.conf"
  printf '#!/bin/sh\nexit 101\n' >"$root/usr/sbin/policy-rc.d"
  chmod +x "$root/usr/sbin/policy-rc.d"
  chroot "$root" useradd --create-home --shell /bin/bash person
}

chroot=$(command -v chroot)
in_root() { local root=$1; shift; env -i HOME=/root PATH=/usr/sbin:/usr/bin:/sbin:/bin LANG=C.UTF-8 DEBIAN_FRONTEND=noninteractive "$chroot" "$root" "$@"; }
as_person() {
  local root=$1; shift
  env -i HOME=/home/person USER=person PATH=/usr/bin:/bin LANG=C.UTF-8 DISPLAY="$display" HF_HUB_OFFLINE=1 "$chroot" --userspec=person:person "$root" "$@"
}
install_package() { in_root "$1" apt-get install -y -qq --no-install-recommends "$2" >"$work/apt.log" 2>&1 || { tail -20 "$work/apt.log" >&2; fail "$2 cannot be installed"; }; }
# Every file of the system that is neither a person's nor written by dpkg and its kin about their own work.
files() { (cd "$1" && find . -xdev \( -path ./home -o -path ./proc -o -path ./sys -o -path ./dev -o -path ./tmp -o -path ./var/lib/dpkg -o -path ./var/lib/apt -o -path ./var/cache -o -path ./var/log -o -path ./run \) -prune -o -print) | sort; }

# What the answers in the history say, one chat after another.
said() { local id; as_person "$1" ponder history --json | python3 -c 'import json, sys
for line in sys.stdin:
    read = json.loads(line)
    for chat in read if isinstance(read, list) else read.get("chats", [read]):
        print(chat["id"])' | while read -r id; do as_person "$1" ponder history export "$id"; done; }

open_window() {
  local root=$1
  as_person "$root" ponder-app >"$work/window.log" 2>&1 &
  started+=($!)
  window=$!
  for _ in $(seq 240); do
    DISPLAY=$display xdotool search --onlyvisible --name '^Ponder$' >/dev/null 2>&1 && { sleep 3; return; }
    kill -0 "$window" 2>/dev/null || { cat "$work/window.log" "$work/xvfb.log" >&2; kill -0 "$xvfb" || echo "the X server is gone" >&2; fail "the window's program ended"; }
    sleep 0.5
  done
  fail "no window came up"
}
# What is on the screen once it stays as it is: an answer is on the disk before it is painted, on a busy computer by seconds.
picture() {
  local colours=0 before='' same=0
  for _ in $(seq 60); do
    sleep 2
    DISPLAY=$display import -window root "$pictures/$1.png"
    colours=$(identify -format %k "$pictures/$1.png")
    if [ "$colours" = "$before" ]; then same=$((same + 1)); else same=0; fi
    before=$colours
    # An empty window has two colours, its own and the screen's.
    [ "$colours" -gt 20 ] && [ $same -ge 3 ] && return
  done
  fail "nothing was painted for two minutes: $pictures/$1.png"
}
# Types into the composer, which has the focus; without a window manager the pointer says which window hears the keys.
ask_window() {
  local root=$1 asked=$2 name=$3
  DISPLAY=$display xdotool mousemove 760 780 click 1 sleep 0.5 type --delay 20 "$asked"
  DISPLAY=$display xdotool key Return
  for _ in $(seq 300); do
    if said "$root" | grep -q "$4"; then
      picture "$name"
      return
    fi
    sleep 1
  done
  DISPLAY=$display import -window root "$pictures/$name-failed.png"
  fail "the window did not answer \"$asked\" with $4; it looked like $pictures/$name-failed.png"
}
close_window() {
  DISPLAY=$display xdotool search --onlyvisible --name '^Ponder$' windowclose >/dev/null 2>&1 || true
  sleep 1
  kill "$window" 2>/dev/null || true
  wait "$window" 2>/dev/null || true
}

earlier() {
  if [ -n "$before" ]; then cp "$before" "$work/before.deb"; return; fi
  rm -rf "$work/unpacked"
  dpkg-deb -R "$deb" "$work/unpacked"
  sed -i 's/^Version: .*/Version: 0.0.1/' "$work/unpacked/DEBIAN/control"
  dpkg-deb --root-owner-group -Zgzip -z1 -b "$work/unpacked" "$work/before.deb" >/dev/null
  rm -rf "$work/unpacked"
}

sizes() {
  local unpacked="$work/sizes"
  dpkg-deb -x "$deb" "$unpacked"
  printf 'report: package %s bytes, installed %s KiB\n' "$(stat -c %s "$deb")" "$(du -sk "$unpacked" | cut -f1)"
  (cd "$unpacked" && for part in usr/bin/ponder-app usr/bin/ponder usr/lib/ponder/mlx usr/lib/ponder/mlx_cpu.libs usr/lib/Ponder/pebble usr/share; do
    [ -e "$part" ] && printf 'report:   %-28s %8s KiB, %8s packed\n' "$part" "$(du -sk "$part" | cut -f1)" "$(tar -cz "$part" | wc -c)"
  done)
  rm -rf "$unpacked"
}

try() {
  local suite=$1 root="$work/$1" missing
  say "$suite"
  clean_root "$suite"
  cp "$deb" "$root/now.deb"
  cp "$work/before.deb" "$root/before.deb"
  in_root "$root" apt-get update -qq >"$work/apt.log" 2>&1 || { cat "$work/apt.log" >&2; fail "$suite: the lists could not be fetched"; }
  files "$root" >"$work/files-before"

  install_package "$root" /before.deb
  in_root "$root" dpkg -L ponder | sort >"$work/package-files"
  missing=$(in_root "$root" sh -c 'for file in /usr/bin/ponder /usr/bin/ponder-app /usr/lib/ponder/mlx/lib/*.so* /usr/lib/ponder/mlx_cpu.libs/*; do ldd "$file" 2>/dev/null | sed -n "s|^|$file: |; /not found/p"; done')
  [ -z "$missing" ] || fail "$suite: libraries that no declared dependency brings: $missing"
  as_person "$root" ponder ask --temperature 0 "$question" | grep -q 936 || fail "$suite: ponder ask did not answer 936"
  say "$suite: installed by its declared dependencies; ponder ask says 936"

  open_window "$root"
  ask_window "$root" "$question" "$suite-window" 936
  say "$suite: the window says 936"

  install_package "$root" /now.deb
  [ "$(in_root "$root" dpkg-query -W -f='${Version}' ponder)" = "$(dpkg-deb -f "$deb" Version)" ] || fail "$suite: it was not upgraded"
  kill -0 "$window" 2>/dev/null || fail "$suite: the upgrade ended the running window"
  ask_window "$root" "What is 214 + 128?" "$suite-upgraded" 342
  as_person "$root" ponder ask --temperature 0 "$question" | grep -q 936 || fail "$suite: after the upgrade ponder ask did not answer"
  close_window
  open_window "$root"
  said "$root" | grep -q 936 || fail "$suite: the chat from before the upgrade is gone"
  picture "$suite-restarted"
  close_window
  say "$suite: upgraded beside a running window, which went on answering; its chats are there in the new one"

  in_root "$root" apt-get purge -y -qq ponder >"$work/apt.log" 2>&1 || { tail -20 "$work/apt.log" >&2; fail "$suite: it cannot be removed"; }
  in_root "$root" apt-get autoremove --purge -y -qq >"$work/apt.log" 2>&1
  files "$root" >"$work/files-after"
  comm -13 "$work/files-before" "$work/files-after" >"$work/left"
  # A folder may stay if a package that stays has it, or something of others is in it; nothing of ours may.
  sed 's|^|.|' "$work/package-files" | sort | comm -12 - "$work/left" | while read -r path; do
    if [ -d "$root/$path" ] && { in_root "$root" dpkg -S "${path#.}" </dev/null >/dev/null 2>&1 || [ -n "$(ls -A "$root/$path")" ]; }; then continue; fi
    echo "$path"
  done >"$work/ours"
  [ ! -s "$work/ours" ] || fail "$suite: left after removal: $(cat "$work/ours")"
  if grep -i ponder "$work/left"; then fail "$suite: left after removal"; fi
  local data
  data=$(cd "$root/home/person" && find . -name '*.db' -o -name '*.sqlite*' | head -1)
  [ -n "$data" ] || fail "$suite: the person's chats went with the package"
  printf 'report: %s: after removal %s files of the system are new, none of them ours; of the person stays %s\n' "$suite" "$(wc -l <"$work/left")" \
    "$(cd "$root/home/person" && find . -mindepth 3 -maxdepth 3 -not -path './.cache/*' | tr '\n' ' ')"
}

mkdir -p /tmp/.X11-unix
# The server chooses a number that is free, and says it when it can be asked.
Xvfb -displayfd 3 -screen 0 1280x900x24 -nolisten tcp -ac -noreset 3>"$work/display" >"$work/xvfb.log" 2>&1 &
xvfb=$!
started+=($xvfb)
for _ in $(seq 300); do [ -s "$work/display" ] && break; sleep 0.1; done
display=":$(cat "$work/display")"
earlier
sizes
for suite in $suites; do try "$suite"; done
say "clean roots: $suites passed; pictures are in $pictures"
