#!/usr/bin/env bash
# Installs the compiler of releases on Linux. The installer is of one version and has to have one hash; it verifies the rest.
set -euo pipefail
version=1.28.2
toolchain=1.95.0
case "$(uname -m)" in
  x86_64) hash=20a06e644b0d9bd2fbdbfd52d42540bdde820ea7df86e92e533c073da0cdd43c ;;
  aarch64) hash=e3853c5a252fca15252d07cb23a1bdd9377a8c6f3efa01531109281ae47f841c ;;
  *) echo "there is no hash for $(uname -m)" >&2; exit 1 ;;
esac
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
curl --proto '=https' --tlsv1.2 -sSf -o "$folder/rustup-init" "https://static.rust-lang.org/rustup/archive/$version/$(uname -m)-unknown-linux-gnu/rustup-init"
echo "$hash  $folder/rustup-init" | sha256sum --check --strict --quiet
chmod +x "$folder/rustup-init"
"$folder/rustup-init" -y --profile minimal --default-toolchain "$toolchain" -c clippy,rustfmt
