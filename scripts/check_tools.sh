#!/bin/sh
# Prints one line with a hint for each tool that is missing; exit status 1 if one is.
set -u
here=$(dirname "$0")
status=0

missing() {
    echo "missing: $1. Hint: $2" >&2
    status=1
}

# Rust 1.89 or later: the first with AVX-512.
rust_is_new_enough() {
    command -v cargo >/dev/null 2>&1 || return 1
    version=$(rustc --version 2>/dev/null) || return 1
    version=${version#rustc }
    major=${version%%.*}
    minor=${version#*.}
    minor=${minor%%.*}
    [ "$major" -gt 1 ] || { [ "$major" -eq 1 ] && [ "$minor" -ge 89 ]; }
}

"$here/find_python.sh" >/dev/null ||
    missing "Python 3.11 or later with venv" "apt-get install python3 python3-venv, or set PYTHON"
rust_is_new_enough ||
    missing "Rust 1.89 or later (cargo and rustc)" "install it from https://rustup.rs"
command -v cc >/dev/null 2>&1 ||
    missing "a C compiler, cc, which links what Rust compiles" "apt-get install gcc libc6-dev"
command -v make >/dev/null 2>&1 ||
    missing "make" "apt-get install make"
exit "$status"
