#!/usr/bin/env bash
# Type-checks and lints what is built for a Mac, on any computer: clippy for aarch64-apple-darwin with the features of a
# Mac. Nothing is linked or run.
#
# usage: check.sh CACHE_DIR BINDINGS_DIR [ARGS]   ARGS go to cargo clippy, by default `--workspace`
#
# BINDINGS_DIR holds bindings.rs of mlx-c, as src-tauri/mlx/setup.sh makes it: the calls are the same on a Mac, the
# types of its C library are not. Ends with 3, after a line that says why, if the target's standard library cannot be
# had here.
set -euo pipefail
cd "$(dirname "$0")/../.."

target=aarch64-apple-darwin
cache=$1/check-mac
bindings=$2
shift 2
all=
[ $# -gt 0 ] || { all=1; set -- --workspace; }
# The build folder only ever grows, so it starts anew beyond this size.
most_kilobytes=4000000

mkdir -p "$cache/tools"
cannot() { printf '%s\n' "$*" >&2; exit 3; }
[ -f "$bindings/bindings.rs" ] || cannot "$bindings has no bindings of mlx-c"

# ---- the target's standard library -----------------------------------------------------------------------------------

has_standard_library() { compgen -G "$(rustc --print sysroot)/lib/rustlib/$target/lib/libstd-*.r*" >/dev/null; }

# Debian ships the library's source in the releases of rustc. Its metadata is all that a check reads, so that nothing of
# it is compiled, and it lies in a copy of the toolchain made of links.
from_debian() {
  local version list archive options package sysroot source toolchain
  version=$(rustc -V | cut -d' ' -f2)
  toolchain="$cache/toolchain-$version"
  if [ ! -e "$toolchain/.complete" ]; then
    command -v apt-get >/dev/null || cannot "rustup has no $target here, and there is no Debian archive to take its source from"
    rm -rf "$cache"/toolchain-* "$cache/debian"
    mkdir -p "$cache/debian/lists/partial"
    archive=$(apt-get indextargets --format '$(REPO_URI)' 'Created-By: Packages' | grep -v security | head -1)
    [ -n "$archive" ] || cannot "apt names no archive"
    list="$cache/debian/sources.list"
    printf 'deb %s %s main\n' "$archive" trixie-backports "$archive" sid >"$list"
    options=(-o "Dir::Etc::sourcelist=$list" -o Dir::Etc::sourceparts=/dev/null -o "Dir::State::Lists=$cache/debian/lists" -o Dir::Cache::pkgcache= -o Dir::Cache::srcpkgcache=)
    apt-get "${options[@]}" update -qq || cannot "the lists of Debian's archive could not be fetched"
    package=$(apt-cache "${options[@]}" madison rust-src | awk -v version="$version" 'index($3, version "+") == 1 { print $3; exit }')
    [ -n "$package" ] || cannot "rustup has no $target here, and Debian has no rust-src $version"
    (cd "$cache/debian" && apt-get "${options[@]}" download -qq "rust-src=$package") || cannot "rust-src $package could not be fetched"
    source="$cache/debian/usr/src/rustc-$version/library"
    dpkg-deb --fsys-tarfile "$cache/debian"/rust-src_*.deb | tar -x -C "$cache/debian" "./usr/src/rustc-$version/library"
    sysroot=$(rustc --print sysroot)
    cp -al "$sysroot" "$toolchain" 2>/dev/null || { rm -rf "$toolchain"; cp -a "$sysroot" "$toolchain"; }
    # A build would want a linker for the library's dynamic form; `check` writes the same metadata without one.
    RUSTC_BOOTSTRAP=1 RUSTFLAGS=-Zforce-unstable-if-unmarked __CARGO_DEFAULT_LIB_METADATA=stable CARGO_TARGET_DIR="$cache/debian/target" \
      "$toolchain/bin/cargo" check --quiet --release --locked --target $target --features panic-unwind,backtrace --manifest-path "$source/sysroot/Cargo.toml"
    mkdir -p "$toolchain/lib/rustlib/$target/lib"
    cp "$cache/debian/target/$target/release/deps/"*.rmeta "$toolchain/lib/rustlib/$target/lib/"
    rm -rf "$cache/debian"
    touch "$toolchain/.complete"
  fi
  export PATH="$toolchain/bin:$PATH"
  # Cargo's own rustup proxy would look for the toolchain without the target again.
  unset RUSTUP_TOOLCHAIN
}

# For tests: as if rustup could fetch nothing.
if [ -n "${PONDER_CHECK_MAC_FROM_DEBIAN:-}" ]; then
  from_debian
elif ! has_standard_library; then
  if ! { command -v rustup >/dev/null && timeout 180 rustup target add $target && has_standard_library; }; then from_debian; fi
fi

# ---- stand-ins for a Mac's C tools -----------------------------------------------------------------------------------

# Build scripts compile C for the target; what they make is never linked, so empty files will do.
cat >"$cache/tools/cc" <<'CC'
#!/bin/sh
output= previous=
for argument in "$@"; do
  [ "$previous" = -o ] && output=$argument
  case "$argument" in
    -o?*) output=${argument#-o} ;;
    --version) echo "clang version 17.0.0"; exit 0 ;;
  esac
  previous=$argument
done
case " $* " in *" -E "*) echo clang; exit 0 ;; esac
[ -z "$output" ] || : >"$output"
CC
cat >"$cache/tools/ar" <<'AR'
#!/bin/sh
for argument in "$@"; do
  case "$argument" in *.a) printf '!<arch>\n' >"$argument"; exit 0 ;; esac
done
AR
chmod +x "$cache/tools/cc" "$cache/tools/ar"
export CC_aarch64_apple_darwin="$cache/tools/cc" CXX_aarch64_apple_darwin="$cache/tools/cc" AR_aarch64_apple_darwin="$cache/tools/ar" RANLIB_aarch64_apple_darwin=true

# ---- the check -------------------------------------------------------------------------------------------------------

built="$cache/target"
if [ -d "$built" ] && [ "$(du -sk "$built" | cut -f1)" -gt $most_kilobytes ]; then rm -rf "$built"; fi
# Debug information would only take space. The caller may have flags for the computer's own target.
unset RUSTFLAGS CARGO_ENCODED_RUSTFLAGS
export CARGO_TARGET_DIR="$built" CARGO_PROFILE_DEV_DEBUG=0 CARGO_INCREMENTAL=0
clippy() {
  cargo clippy --quiet --target $target --config "target.$target.mlx.rustc-env.OUT_DIR='$bindings'" --config "target.$target.mlx.rustc-link-lib=['static=mlxc']" "$@" -- -D warnings
}
clippy --all-targets "$@"
# A product is built without the features that tests switch on, and may miss what only they have.
[ -z "$all" ] || clippy --workspace --exclude bench --bins
