#!/bin/sh
# Makes a repository in a new folder, and verifies the two patches of this folder in it.
set -eu
source=$(cd "$(dirname "$0")" && pwd)
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cp "$source"/upper.c "$source"/Makefile "$source"/input.sh "$folder"
cd "$folder"
echo .equipoise > .gitignore
git init --quiet
commit() {
    git add --all
    git -c user.name=Ada -c user.email=ada@example.com -c commit.gpgsign=false \
        commit --quiet -m "$1"
    git tag "$1"
}
commit slow
patch --quiet -p1 < "$source"/faster.patch
commit faster
git checkout --quiet slow -- upper.c
patch --quiet -p1 < "$source"/wrong.patch
commit wrong

verify() {
    candidate=$1
    shift
    equipoise verify --baseline slow --candidate "$candidate" --build 'make -s' \
        --input-command 'sh input.sh' "$@" -- ./upper
}
verify faster --certificate "$folder/certificate"
equipoise verify --replay "$folder/certificate"
# The wrong patch is as fast, but it changes only the first half of the text.
verify wrong && exit 1
[ $? = 1 ]
