#!/usr/bin/env bash
# Passes the signing secrets to the build. An unset secret is an empty text in a workflow, which the bundler would take
# for a certificate; so only non-empty ones are written to GITHUB_ENV, and only complete groups.
#
# Prints the kind of signature: developer-id or ad-hoc, and notarized or not.
set -euo pipefail

: "${GITHUB_ENV:?is the file that a workflow hands variables on in}"

complete() {
  local name
  for name in "$@"; do [ -n "${!name:-}" ] || return 1; done
}
hand_on() {
  local name mark
  for name in "$@"; do
    # Values may have several lines, which is written with a mark that does not occur in them.
    mark="end-of-$RANDOM$RANDOM"
    printf '%s<<%s\n%s\n%s\n' "$name" "$mark" "${!name}" "$mark" >>"$GITHUB_ENV"
  done
}

signed=ad-hoc notarised=no
if complete APPLE_CERTIFICATE APPLE_CERTIFICATE_PASSWORD APPLE_SIGNING_IDENTITY; then
  signed=developer-id
  hand_on APPLE_CERTIFICATE APPLE_CERTIFICATE_PASSWORD APPLE_SIGNING_IDENTITY
  if complete APPLE_API_KEY APPLE_API_ISSUER APPLE_API_KEY_CONTENT; then
    notarised=yes
    # The bundler wants the key as a file.
    APPLE_API_KEY_PATH="${RUNNER_TEMP:-/tmp}/AuthKey_$APPLE_API_KEY.p8"
    (umask 077 && printf '%s\n' "$APPLE_API_KEY_CONTENT" >"$APPLE_API_KEY_PATH")
    hand_on APPLE_API_KEY APPLE_API_ISSUER APPLE_API_KEY_PATH
  fi
fi
echo "signature: $signed, notarised: $notarised"
