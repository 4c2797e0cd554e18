#!/usr/bin/env bash
# Runs a command with the signing secrets. An unset secret is an empty text in a workflow, which the bundler would take
# for a certificate; so only complete groups are passed on. No other process gets them, and no later step.
#
# usage: secrets.sh COMMAND [ARGUMENT...]
#
# Prints the kind of signature first: developer-id or ad-hoc, and notarized or not.
set -euo pipefail

complete() {
  local name
  for name in "$@"; do [ -n "${!name:-}" ] || return 1; done
}

signed=ad-hoc notarised=no
certificate=(APPLE_CERTIFICATE APPLE_CERTIFICATE_PASSWORD APPLE_SIGNING_IDENTITY)
notary=(APPLE_API_KEY APPLE_API_ISSUER APPLE_API_KEY_CONTENT)
if complete "${certificate[@]}"; then
  signed=developer-id
else
  unset "${certificate[@]}"
fi
if [ $signed = developer-id ] && complete "${notary[@]}"; then
  notarised=yes
  # The bundler wants the key as a file.
  folder=$(mktemp -d)
  trap 'rm -rf "$folder"' EXIT
  export APPLE_API_KEY_PATH="$folder/AuthKey_$APPLE_API_KEY.p8"
  (umask 077 && printf '%s\n' "$APPLE_API_KEY_CONTENT" >"$APPLE_API_KEY_PATH")
  unset APPLE_API_KEY_CONTENT
else
  unset "${notary[@]}"
fi
[ -n "${TAURI_SIGNING_PRIVATE_KEY:-}" ] || unset TAURI_SIGNING_PRIVATE_KEY TAURI_SIGNING_PRIVATE_KEY_PASSWORD
echo "signature: $signed, notarised: $notarised"
"$@"
