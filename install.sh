#!/bin/sh
# Installs Paloma's executable, after holding it against the release's checksums:
#   sh install.sh [FOLDER]        (/usr/local/bin)
# PALOMA_RELEASES is where the release's files are; a released copy of this script knows its own.
set -eu

folder=${1:-/usr/local/bin}
base=${PALOMA_RELEASES:-@RELEASES@}
case $base in @*) echo "install.sh: say with PALOMA_RELEASES where the release is" >&2; exit 2 ;; esac

case $(uname -s) in
  Linux) system=unknown-linux-gnu ;;
  Darwin) system=apple-darwin ;;
  *) echo "install.sh: there is no build for $(uname -s); see the README for running from source" >&2; exit 1 ;;
esac
case $(uname -m) in
  x86_64 | amd64) machine=x86_64 ;;
  aarch64 | arm64) machine=aarch64 ;;
  *) echo "install.sh: there is no build for $(uname -m); see the README for running from source" >&2; exit 1 ;;
esac
name=paloma-$machine-$system

# Over TLS alone, wherever a release on the web redirects to.
case $base in https:*) schemes="=https" ;; *) schemes="=http,https" ;; esac

scratch=$(mktemp -d)
new=
trap 'rm -rf "$scratch" ${new:+"$new"}' EXIT
fetch() {
  curl --fail --silent --show-error --location --proto "$schemes" --proto-redir "$schemes" \
    --output "$scratch/$1" "$base/$1"
}
fetch SHA256SUMS
fetch "$name"

expected=$(awk -v name="$name" '$2 == name { print $1 }' "$scratch/SHA256SUMS")
if command -v sha256sum >/dev/null; then actual=$(sha256sum "$scratch/$name"); else actual=$(shasum -a 256 "$scratch/$name"); fi
if [ -z "$expected" ] || [ "${actual%% *}" != "$expected" ]; then
  echo "install.sh: $name does not have the checksum of the release; nothing was installed" >&2
  exit 1
fi

mkdir -p "$folder"
# A name that nobody can foresee, and put a link there.
new=$(mktemp "$folder/.paloma.XXXXXX")
cp "$scratch/$name" "$new"
chmod 755 "$new"
if ! version=$("$new" version); then
  echo "install.sh: $name does not run here; nothing was installed" >&2
  exit 1
fi
# In one step, so that a running gateway keeps the file that it was started from.
mv "$new" "$folder/paloma"
echo "$folder/paloma is $version"
