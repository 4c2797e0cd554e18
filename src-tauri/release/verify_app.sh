#!/usr/bin/env bash
# Asks macOS about a bundle that was built: its signature, its entitlements and, if it was notarized, what Gatekeeper
# says. For Macs.
#
# usage: verify_app.sh FOLDER, which holds the app
set -euo pipefail
app=$(find "$1" -maxdepth 1 -name '*.app' -print | head -1)
[ -n "$app" ] || { echo "there is no app in $1" >&2; exit 1; }
codesign --verify --deep --strict --verbose=2 "$app"
codesign --display --verbose=2 "$app" 2>&1 | grep -E '^(Identifier|Authority|Signature|flags|Runtime Version)' || true
for program in "$app"/Contents/MacOS/*; do
  codesign --display --verbose=2 "$program" 2>&1 | grep -q 'flags=.*runtime' || { echo "$program has no hardened runtime" >&2; exit 1; }
  entitlements=$(codesign --display --entitlements - --xml "$program" 2>/dev/null || true)
  case "$entitlements" in *"<key>"*) echo "$program has entitlements: $entitlements" >&2; exit 1 ;; esac
  [ "$(lipo -archs "$program")" = arm64 ] || { echo "$program is not for arm64 alone" >&2; exit 1; }
done
if codesign --display --verbose=2 "$app" 2>&1 | grep -q '^Authority=Developer ID'; then
  spctl --assess --type execute --verbose "$app"
  xcrun stapler validate "$app"
else
  echo "signed ad hoc: Gatekeeper asks a person to allow it once"
fi
"$app/Contents/MacOS/ponder" ask --temperature 0 "What is 347 + 589?" | grep 936
