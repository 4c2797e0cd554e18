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
# shellcheck source=src-tauri/standard_library.sh
. src-tauri/standard_library.sh
[ -f "$bindings/bindings.rs" ] || cannot "$bindings has no bindings of mlx-c"

# ---- the target's standard library -----------------------------------------------------------------------------------

standard_library $target "$cache" check

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
