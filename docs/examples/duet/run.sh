#!/bin/sh
# Compares two versions of a program that run at once, each on CPUs of its own. The new version does
# 3 % more work. Needs a C compiler and two CPUs; Equipoise says so if there is only one.
set -e
source=$(dirname "$0")/sum.c
folder=$(mktemp -d)
trap 'rm -r "$folder"' EXIT
"${CC:-cc}" -O2 -DWORK=10000000 -o "$folder/old" "$source"
"${CC:-cc}" -O2 -DWORK=10300000 -o "$folder/new" "$source"
equipoise compare "$folder/old" "$folder/new" -n old -n new --duet "$@"
