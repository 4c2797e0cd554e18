#!/usr/bin/env bash
# The steps of the release workflow that need neither a Mac nor a build, with a stand-in for the packages.
set -euo pipefail
cd "$(dirname "$0")/../.."
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
fail() { printf 'release: %s\n' "$*" >&2; exit 1; }
unset APPLE_CERTIFICATE APPLE_CERTIFICATE_PASSWORD APPLE_SIGNING_IDENTITY APPLE_API_KEY APPLE_API_ISSUER APPLE_API_KEY_CONTENT
unset APPLE_API_KEY_PATH TAURI_SIGNING_PRIVATE_KEY TAURI_SIGNING_PRIVATE_KEY_PASSWORD

# Secrets: none, a part, all. A command gets those that are complete, and nothing is left of them afterwards.
export TMPDIR="$work"
signed() { env "$@" src-tauri/release/secrets.sh sh -c 'env -0 >"$1"; cp "${APPLE_API_KEY_PATH:-/dev/null}" "$1.key"; stat -c %a "${APPLE_API_KEY_PATH:-/dev/null}" >"$1.mode"' - "$work/env"; }
has() { grep -zqxF "$1" "$work/env"; }
[ "$(signed APPLE_CERTIFICATE= TAURI_SIGNING_PRIVATE_KEY=)" = "signature: ad-hoc, notarised: no" ] || fail "no secrets"
[ "$(signed APPLE_CERTIFICATE=abc APPLE_CERTIFICATE_PASSWORD=p APPLE_API_KEY=K)" = "signature: ad-hoc, notarised: no" ] || fail "a certificate without an identity"
if grep -zq '^APPLE_\|^TAURI_' "$work/env"; then fail "incomplete secrets were handed on"; fi
whole=(APPLE_CERTIFICATE=abc APPLE_CERTIFICATE_PASSWORD='p w' APPLE_SIGNING_IDENTITY='Developer ID')
[ "$(signed "${whole[@]}" TAURI_SIGNING_PRIVATE_KEY=t)" = "signature: developer-id, notarised: no" ] || fail "a certificate alone"
has TAURI_SIGNING_PRIVATE_KEY=t || fail "the release key was not handed on"
[ "$(signed "${whole[@]}" APPLE_API_KEY=K APPLE_API_ISSUER=I APPLE_API_KEY_CONTENT=$'first\nsecond')" = "signature: developer-id, notarised: yes" ] || fail "all secrets"
has 'APPLE_CERTIFICATE_PASSWORD=p w' && has APPLE_API_ISSUER=I || fail "a secret was changed on the way"
[ "$(cat "$work/env.mode")" = 600 ] && grep -qx second "$work/env.key" || fail "the key's file"
[ -z "$(find "$work" -name 'AuthKey_*')" ] || fail "the key's file was left"
if src-tauri/release/secrets.sh false >/dev/null; then fail "a failed signature passed"; fi

# The workflow: secrets stand in one step alone, of a job that neither builds nor runs what was built.
python3 - <<'PY' || fail "secrets in the workflow"
import re
text = open(".github/workflows/release.yml").read()
jobs = dict(re.findall(r"^  ([a-z-]+):\n((?:(?:    .*|  #.*)?\n)+)", text.split("\njobs:\n")[1], re.MULTILINE))
assert {"linux", "macos", "sign", "verify", "draft"} <= set(jobs), sorted(jobs)
assert {name for name, job in jobs.items() if "{{ secrets." in job} == {"sign"}
steps = re.split(r"^      - ", jobs["sign"], flags=re.MULTILINE)
commands = [re.search(r"^ *(?:- )?run: (.*)", step, re.MULTILINE) for step in steps]
assert [step.split("\n")[0] for step in steps if "{{ secrets." in step] == ["name: Sign"]
assert [command[1] for command in commands if command] == [
    "npm --prefix ui ci --ignore-scripts --no-audit --no-fund",
    "tar -C / -xzf unsigned.tar.gz",
    "src-tauri/release/secrets.sh ./dev bundle",
    'python3 src-tauri/release/assets.py packages macos "$(./dev bundle-folder)" assets',
], commands
PY

# Wheels that are linked into the package, or build it: each has the hashes of both architectures, and pip demands them.
python3 - <<'PY' || fail "wheels without hashes"
import pathlib, re
for file in pathlib.Path("src-tauri/mlx").glob("*requirements.txt"):
    text = "\n".join(line for line in file.read_text().splitlines() if not line.startswith("#")).replace("\\\n", " ")
    for requirement in filter(None, text.splitlines()):
        name, *hashes = requirement.split()
        assert re.fullmatch(r"[a-z-]+==[0-9.]+", name), name
        assert len(set(hashes)) >= 2 and all(re.fullmatch(r"--hash=sha256:[0-9a-f]{64}", each) for each in hashes), requirement
script = pathlib.Path("src-tauri/mlx/setup.sh").read_text()
assert script.count("pip\" install") == 1 and "--require-hashes --only-binary :all:" in script
PY

# Licenses: everything that is built in has one that is allowed, and expressions mean what SPDX says.
python3 src-tauri/dependencies.py check
PYTHONPATH=src-tauri python3 - <<'PY' || fail "licences are read wrongly"
from dependencies import ALLOWED, chosen
assert chosen("MIT OR Apache-2.0") == ["Apache-2.0"]
assert chosen("(MIT OR Apache-2.0) AND Unicode-3.0") == ["Apache-2.0", "Unicode-3.0"]
assert chosen("Apache-2.0 WITH LLVM-exception OR Apache-2.0 OR MIT") == ["Apache-2.0"]
assert chosen("GPL-3.0-only OR MIT") == ["MIT"]
assert chosen("MIT AND BSD-3-Clause OR GPL-3.0-only") == ["BSD-3-Clause", "MIT"]
assert not set(chosen("GPL-3.0-only")) <= ALLOWED and chosen(None) == []
PY

# Versions: the tag's everywhere, or the release ends before it builds.
version=$(sed -n 's/^version = "\(.*\)"/\1/p' Cargo.toml | head -1)
mkdir -p "$work/tree/src-tauri/release" "$work/tree/ui"
cp Cargo.toml tauri.conf.json "$work/tree/"
cp ui/package.json "$work/tree/ui/"
cp src-tauri/release/{version.sh,notes.py} "$work/tree/src-tauri/release/"
printf '# Changelog\n\n## Unreleased\n\n## %s - 2026-12-01\n\n### Added\n- Everything.\n\n## 0.0.1\n- Old.\n' "$version" >"$work/tree/CHANGELOG.md"
(cd "$work/tree" && src-tauri/release/version.sh "v$version") || fail "one version everywhere was refused"
if (cd "$work/tree" && sed -i 's/"version": "[0-9.]*"/"version": "9.9.9"/' tauri.conf.json && src-tauri/release/version.sh "v$version") 2>/dev/null; then fail "two versions passed"; fi
[ "$(cd "$work/tree" && python3 src-tauri/release/notes.py "$version")" = $'### Added\n- Everything.' ] || fail "the notes are not the version's"
if (cd "$work/tree" && python3 src-tauri/release/notes.py 7.7.7) 2>/dev/null; then fail "notes for a version without any"; fi

# The content of a release: checksums that hold, a cask with the image's, a repository from which apt takes the package.
mkdir -p "$work/package/DEBIAN" "$work/bundle/deb" "$work/bundle/dmg"
printf 'Package: ponder\nVersion: %s\nArchitecture: amd64\nMaintainer: The Ponder authors\nDepends: libc6\nDescription: stand-in\n of a test\n' "$version" >"$work/package/DEBIAN/control"
dpkg-deb --root-owner-group -b "$work/package" "$work/bundle/deb/Ponder_${version}_amd64.deb" >/dev/null
echo image >"$work/bundle/dmg/Ponder_${version}_aarch64.dmg"
# An update, signed as the bundler signs it.
mkdir "$work/bundle/macos"
echo archive >"$work/bundle/macos/Ponder.app.tar.gz"
ui/node_modules/.bin/tauri signer generate --ci --password '' --write-keys "$work/release.key" >/dev/null 2>&1 || fail "no release key was made"
ui/node_modules/.bin/tauri signer sign --private-key-path "$work/release.key" --password '' --app-version "$version" "$work/bundle/macos/Ponder.app.tar.gz" >/dev/null 2>&1 ||
  fail "the archive was not signed"
for system in linux macos; do python3 src-tauri/release/assets.py collect $system "$work/bundle" "$work/assets"; done
python3 src-tauri/release/assets.py finish "$work/assets" "$version" owner/ponder
(cd "$work/assets" && sha256sum --check --strict --quiet SHA256SUMS) || fail "checksums"
python3 - "$work/assets" "$version" <<'PY' || fail "the list of updates"
import base64, json, pathlib, sys
assets, version = pathlib.Path(sys.argv[1]), sys.argv[2]
listed = json.loads((assets / "latest.json").read_text())
platform = listed["platforms"]["darwin-aarch64"]
assert listed["version"] == version
assert platform["url"] == f"https://github.com/owner/ponder/releases/download/v{version}/Ponder.app.tar.gz", platform
assert (assets / platform["url"].rpartition("/")[2]).exists()
# Ponder takes only what is signed for the version that is listed.
assert f"version:{version}" in base64.b64decode(platform["signature"]).decode()
PY
grep -q "sha256 \"$(sha256sum <"$work/bundle/dmg/Ponder_${version}_aarch64.dmg" | cut -d' ' -f1)\"" "$work/assets/ponder.rb" || fail "the cask's checksum"
if grep -q '@[a-z0-9]*@' "$work/assets/ponder.rb"; then fail "the cask was not filled in"; fi
for system in linux macos; do
  python3 - "$work/assets/ponder-$system.cdx.json" <<'PY' || fail "the bill of materials for $system"
import json, sys
bill = json.load(open(sys.argv[1]))
parts = {part["bom-ref"]: part for part in bill["components"]}
assert (bill["bomFormat"], bill["specVersion"]) == ("CycloneDX", "1.6") and len(parts) == len(bill["components"]) > 300
assert set(bill["dependencies"][0]["dependsOn"]) == set(parts)
assert any(ref.startswith("pkg:cargo/tauri@") for ref in parts) and any(ref.startswith("pkg:npm/katex@") for ref in parts)
assert any(ref.startswith("pkg:cargo/objc2-app-kit@") for ref in parts) == ("macos" in sys.argv[1])
assert not any(ref.startswith(("pkg:cargo/proptest@", "pkg:npm/vitest@")) for ref in parts), "tools of tests are not built in"
PY
done
mkdir -p "$work/repository" "$work/lists/partial"
tar -C "$work/repository" -xzf "$work/assets/debian-repository.tar.gz"
echo "deb [trusted=yes] file:$work/repository stable main" >"$work/sources.list"
chmod -R a+rX "$work"
apt=(-qq -o "Dir::Etc::sourcelist=$work/sources.list" -o Dir::Etc::sourceparts=/dev/null -o "Dir::State::Lists=$work/lists" -o Dir::Cache::pkgcache= -o Dir::Cache::srcpkgcache= -o APT::Architecture=amd64)
apt-get "${apt[@]}" update || fail "apt does not read the repository"
(cd "$work" && apt-get "${apt[@]}" download "ponder=$version") || fail "apt does not take the package from the repository"
cmp "$work"/ponder_*.deb "$work/bundle/deb/Ponder_${version}_amd64.deb" || fail "apt took another package"
echo "the release's steps are as they should be"
