#!/usr/bin/env bash
# Fails unless every place that names the version names the one of a tag.
#
# usage: version.sh vX.Y.Z
set -euo pipefail
cd "$(dirname "$0")/../.."
wanted=${1#v}
wrong=
for found in \
  "Cargo.toml $(sed -n 's/^version = "\(.*\)"/\1/p' Cargo.toml | head -1)" \
  "tauri.conf.json $(python3 -c 'import json; print(json.load(open("tauri.conf.json"))["version"])')" \
  "ui/package.json $(python3 -c 'import json; print(json.load(open("ui/package.json"))["version"])')" \
  "CHANGELOG.md $(sed -n 's/^## \([0-9][^ ]*\).*/\1/p' CHANGELOG.md | head -1)"; do
  [ "${found#* }" = "$wanted" ] || { echo "${found%% *} has ${found#* }, the tag $wanted" >&2; wrong=1; }
done
[ -z "$wrong" ]
