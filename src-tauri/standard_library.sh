# Gets Rust's standard library for another target, for scripts that read this one.
#
# usage: standard_library TARGET CACHE_DIR check|build   for a `check` metadata will do, which no linker makes
#
# By rustup, or else from Debian, which changes PATH. Ends the script with 3, after a line that says why, if it cannot be
# had here. `PONDER_LIBRARY_FROM_DEBIAN` is for tests: as if rustup could fetch nothing.

cannot() { printf '%s\n' "$*" >&2; exit 3; }

has_standard_library() { compgen -G "$(rustc --print sysroot)/lib/rustlib/$1/lib/libstd-*.r*" >/dev/null; }

standard_library() {
  local target=$1
  if [ -n "${PONDER_LIBRARY_FROM_DEBIAN:-}" ]; then
    standard_library_from_debian "$@"
  elif ! has_standard_library "$target"; then
    if ! { command -v rustup >/dev/null && timeout 180 rustup target add "$target" && has_standard_library "$target"; }; then
      standard_library_from_debian "$@"
    fi
  fi
}

# Debian ships the library's source in the releases of rustc. What is made of it lies in a copy of the toolchain made of
# links.
standard_library_from_debian() {
  local target=$1 cache=$2 form=$3 version list archive options package sysroot source toolchain made
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
    # A build wants a linker for the library's dynamic form; `check` writes the same metadata without one.
    RUSTC_BOOTSTRAP=1 RUSTFLAGS=-Zforce-unstable-if-unmarked __CARGO_DEFAULT_LIB_METADATA=stable CARGO_TARGET_DIR="$cache/debian/target" \
      "$toolchain/bin/cargo" "$form" --quiet --release --locked --target "$target" --features panic-unwind,backtrace --manifest-path "$source/sysroot/Cargo.toml"
    made=rmeta
    [ "$form" = check ] || made=rlib
    # The toolchain may have one of rustup's.
    rm -rf "$toolchain/lib/rustlib/$target"
    mkdir -p "$toolchain/lib/rustlib/$target/lib"
    cp "$cache/debian/target/$target/release/deps/"*."$made" "$toolchain/lib/rustlib/$target/lib/"
    rm -rf "$cache/debian"
    touch "$toolchain/.complete"
  fi
  export PATH="$toolchain/bin:$PATH"
  # Cargo's own rustup proxy would look for the toolchain without the target again.
  unset RUSTUP_TOOLCHAIN
}
