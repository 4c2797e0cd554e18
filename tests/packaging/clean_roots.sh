#!/usr/bin/env bash
# Installs a package of Ponder in clean Debian roots by its declared dependencies alone, uses it as a user would, and
# removes it; then the same after an upgrade next to a running window.
# As root, because it makes roots and mounts what they need.
#
# usage: clean_roots.sh CACHE_DIR DEB [BEFORE]    BEFORE is an earlier package; without one, DEB itself with a lower version stands for it
set -euo pipefail

cache=${1:?}/roots
deb=$(readlink -f "$2")
before=${3:+$(readlink -f "$3")}
suites=${PONDER_SUITES_OF_DEBIAN:-bookworm trixie}
question="What is 347 + 589?"

say() { printf '\033[1m==> %s\033[0m\n' "$*"; }
fail() { printf 'clean_roots: %s\n' "$*" >&2; exit 1; }

[ "$(id -u)" -eq 0 ] || fail "only root can make roots"
for program in debootstrap Xvfb xdotool import identify desktop-file-validate; do command -v $program >/dev/null || fail "$program is missing"; done
# The archive that this computer uses, unless another one is named, as on Ubuntu.
# shellcheck disable=SC2016
archive=${PONDER_DEBIAN_ARCHIVE:-$(apt-get indextargets --format '$(REPO_URI)' 'Created-By: Packages' | awk '!/security/ && !seen++')}
[ -n "$archive" ] || fail "apt names no archive of Debian; PONDER_DEBIAN_ARCHIVE can name one"
work=$(readlink -f "$(mktemp -d)")
images="$cache/images"
mkdir -p "$cache" "$images"
display=
started=()

# The processes of a root, or those of one program in it.
inside() {
  local root=$1 name=${2:-} process
  for process in /proc/[0-9]*; do
    [ "$(readlink "$process/root" 2>/dev/null)" = "$root" ] || continue
    [ -z "$name" ] || [ "$(cat "$process/comm" 2>/dev/null)" = "$name" ] || continue
    echo "${process#/proc/}"
  done
}

finish() {
  local process root
  for root in "$work"/*/; do
    for process in $(inside "${root%/}"); do kill -9 "$process" 2>/dev/null || true; done
  done
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
    rm -rf "${cache:?}/$suite"
    debootstrap --variant=minbase "$suite" "$cache/$suite" "$archive" >"$cache/$suite.log" 2>&1 || { tail -5 "$cache/$suite.log" >&2; fail "$suite could not be bootstrapped"; }
    tar -C "$cache/$suite" -cf "$cache/$suite.tar.part" .
    mv "$cache/$suite.tar.part" "$cache/$suite.tar"
    rm -rf "${cache:?}/$suite"
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
  # The archive is configured as on this computer.
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
# Every file of the user except caches.
own_files() { (cd "$1/home/person" && find . -type f -not -path './.cache/*' | sort); }
# Every file of the system that belongs neither to the user nor to the records of dpkg and apt.
files() { (cd "$1" && find . -xdev \( -path ./home -o -path ./proc -o -path ./sys -o -path ./dev -o -path ./tmp -o -path ./var/lib/dpkg -o -path ./var/lib/apt -o -path ./var/cache -o -path ./var/log -o -path ./run \) -prune -o -print) | sort; }

# The answers in the history, one chat after another.
said() { local id; as_person "$1" ponder history --json | python3 -c 'import json, sys
for line in sys.stdin:
    read = json.loads(line)
    for chat in read if isinstance(read, list) else read.get("chats", [read]):
        print(chat["id"])' | while read -r id; do as_person "$1" ponder history export "$id"; done; }

open_window() {
  local root=$1 starter
  as_person "$root" ponder-app >"$work/window.log" 2>&1 &
  starter=$!
  for _ in $(seq 240); do
    if DISPLAY=$display xdotool search --onlyvisible --name '^Ponder$' >/dev/null 2>&1; then
      # The started process is a shell that waits for the program.
      window=$(inside "$root" ponder-app)
      [ "$(echo "$window" | wc -w)" -eq 1 ] || fail "one ponder-app was to run, not: $window"
      sleep 3
      return
    fi
    kill -0 "$starter" 2>/dev/null || { cat "$work/window.log" "$work/xvfb.log" >&2; kill -0 "$xvfb" || echo "the X server is gone" >&2; fail "the window's program ended"; }
    sleep 0.5
  done
  fail "no window came up"
}
# The screen once it stays the same: an answer is on the disk before it is painted, on a busy computer by seconds.
image() {
  local colours=0 before='' same=0
  for _ in $(seq 60); do
    sleep 2
    DISPLAY=$display import -window root "$images/$1.png"
    colours=$(identify -format %k "$images/$1.png")
    if [ "$colours" = "$before" ]; then same=$((same + 1)); else same=0; fi
    before=$colours
    # An empty window has two colors, its own and the screen's.
    [ "$colours" -gt 20 ] && [ $same -ge 3 ] && return
  done
  fail "nothing was painted for two minutes: $images/$1.png"
}
# Types into the composer, which has the focus; without a window manager the pointer says which window hears the keys.
ask_window() {
  local root=$1 asked=$2 name=$3
  DISPLAY=$display xdotool mousemove 760 780 click 1 sleep 0.5 type --delay 20 "$asked"
  DISPLAY=$display xdotool key Return
  for _ in $(seq 300); do
    said "$root" >"$work/said" || true
    if grep -q "$4" "$work/said"; then
      image "$name"
      return
    fi
    sleep 1
  done
  DISPLAY=$display import -window root "$images/$name-failed.png"
  fail "the window did not answer \"$asked\" with $4; it looked like $images/$name-failed.png"
}
# Quits as a user would; nothing is running, so there is no question.
close_window() {
  DISPLAY=$display xdotool key ctrl+q
  for _ in $(seq 60); do
    kill -0 "$window" 2>/dev/null || return 0
    sleep 0.5
  done
  DISPLAY=$display import -window root "$images/not-closed.png"
  fail "Control and Q did not end the window; it looked like $images/not-closed.png"
}

earlier() {
  if [ -n "$before" ]; then
    dpkg --compare-versions "$(dpkg-deb -f "$before" Version)" lt "$(dpkg-deb -f "$deb" Version)" || fail "$before is no earlier version"
    cp "$before" "$work/before.deb"
    return
  fi
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
    [ -e "$part" ] || fail "the package has no $part"
    printf 'report:   %-28s %8s KiB, %8s bytes packed\n' "$part" "$(du -sk "$part" | cut -f1)" "$(tar -cz "$part" | wc -c)"
  done)
  rm -rf "$unpacked"
}

# The files of the package that a desktop and a shell look for.
check_files() {
  local suite=$1 root=$2 entry missing place
  in_root "$root" dpkg -L ponder | sort >"$work/package-files"
  # shellcheck disable=SC2016
  missing=$(in_root "$root" sh -c 'for file in /usr/bin/ponder /usr/bin/ponder-app /usr/lib/ponder/mlx/lib/*.so* /usr/lib/ponder/mlx_cpu.libs/*; do ldd "$file" 2>/dev/null | sed -n "s|^|$file: |; /not found/p"; done')
  [ -z "$missing" ] || fail "$suite: libraries that no declared dependency brings: $missing"
  for place in man/man1/ponder.1.gz bash-completion/completions/ponder zsh/vendor-completions/_ponder fish/vendor_completions.d/ponder.fish doc/ponder/copyright; do
    [ -s "$root/usr/share/$place" ] || fail "$suite: /usr/share/$place is missing"
  done
  entry="$root/usr/share/applications/Ponder.desktop"
  desktop-file-validate "$entry" || fail "$suite: the desktop entry is not valid"
  grep -qxE 'Exec=(/usr/bin/)?ponder-app %u' "$entry" || fail "$suite: the desktop entry starts something else: $(grep '^Exec' "$entry")"
  [ "$(find "$root/usr/share/icons/hicolor" -name 'ponder-app.*' | wc -l)" -ge 5 ] || fail "$suite: icons are missing"
}

# Removes the package, by `remove` or `purge`, and checks that only the user's files are left.
remove() {
  local suite=$1 root=$2 how=$3 path
  own_files "$root" >"$work/own-before"
  in_root "$root" apt-get "$how" -y -qq ponder >"$work/apt.log" 2>&1 || { tail -20 "$work/apt.log" >&2; fail "$suite: it cannot be removed"; }
  in_root "$root" apt-get autoremove --purge -y -qq >"$work/apt.log" 2>&1 || { tail -20 "$work/apt.log" >&2; fail "$suite: what it brought cannot be removed"; }
  files "$root" >"$work/files-after"
  comm -13 "$work/files-before" "$work/files-after" >"$work/left"
  # A folder may stay if a package that stays has it, or something of others is in it; nothing of ours may.
  sed 's|^|.|' "$work/package-files" | sort | comm -12 - "$work/left" | while read -r path; do
    if [ -d "$root/$path" ] && { in_root "$root" dpkg -S "${path#.}" </dev/null >/dev/null 2>&1 || [ -n "$(ls -A "$root/$path")" ]; }; then continue; fi
    echo "$path"
  done >"$work/ours"
  [ ! -s "$work/ours" ] || fail "$suite: left after $how: $(cat "$work/ours")"
  if grep -i ponder "$work/left"; then fail "$suite: left after $how"; fi
  own_files "$root" >"$work/own-after"
  diff "$work/own-before" "$work/own-after" || fail "$suite: $how changed what belongs to the person"
  grep -q 'history\.sqlite$' "$work/own-after" || fail "$suite: the person's chats went with the package"
  printf 'report: %s: after %s %s files of the system are new, none of them ours; of the person stay %s files\n' "$suite" "$how" "$(wc -l <"$work/left")" "$(wc -l <"$work/own-after")"
}

try() {
  local suite=$1 root="$work/$1"
  say "$suite"
  clean_root "$suite"
  cp "$deb" "$root/now.deb"
  cp "$work/before.deb" "$root/before.deb"
  in_root "$root" apt-get update -qq >"$work/apt.log" 2>&1 || { cat "$work/apt.log" >&2; fail "$suite: the lists could not be fetched"; }
  files "$root" >"$work/files-before"

  # The package alone, so that nothing an earlier one declared can help it.
  install_package "$root" /now.deb
  check_files "$suite" "$root"
  as_person "$root" ponder ask --temperature 0 "$question" | grep 936 >/dev/null || fail "$suite: ponder ask did not answer 936"
  say "$suite: installed by its declared dependencies; ponder ask says 936"
  open_window "$root"
  ask_window "$root" "$question" "$suite-window" 936
  close_window
  say "$suite: the window says 936"
  remove "$suite" "$root" remove

  install_package "$root" /before.deb
  open_window "$root"
  ask_window "$root" "What is 214 + 128?" "$suite-before" 342
  install_package "$root" /now.deb
  # shellcheck disable=SC2016
  [ "$(in_root "$root" dpkg-query -W -f='${Version}' ponder)" = "$(dpkg-deb -f "$deb" Version)" ] || fail "$suite: it was not upgraded"
  kill -0 "$window" 2>/dev/null || fail "$suite: the upgrade ended the running window"
  ask_window "$root" "What is 305 + 416?" "$suite-upgraded" 721
  as_person "$root" ponder ask --temperature 0 "$question" | grep 936 >/dev/null || fail "$suite: beside the window from before the upgrade ponder ask did not answer"
  close_window
  open_window "$root"
  said "$root" >"$work/said"
  for answer in 936 342 721; do grep -q $answer "$work/said" || fail "$suite: the chat with $answer is gone after the upgrade"; done
  ask_window "$root" "What is 118 + 237?" "$suite-restarted" 355
  close_window
  say "$suite: upgraded beside a running window, which went on answering; the new one has its chats and answers"
  in_root "$root" dpkg -L ponder | sort >"$work/package-files"
  remove "$suite" "$root" purge
}

mkdir -p /tmp/.X11-unix
# The server chooses a number that is free, and says it when it can be asked.
Xvfb -displayfd 3 -screen 0 1280x900x24 -nolisten tcp -ac -noreset 3>"$work/display" >"$work/xvfb.log" 2>&1 &
xvfb=$!
started+=("$xvfb")
for _ in $(seq 300); do [ -s "$work/display" ] && break; sleep 0.1; done
display=":$(cat "$work/display")"
earlier
sizes
for suite in $suites; do try "$suite"; done
say "clean roots: $suites passed; images are in $images"
