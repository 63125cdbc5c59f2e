#!/bin/sh
# Fills the folder of the packages that live tests of benchmark tools need, from their registries:
#
#     scripts/test_tools.sh          all tools
#     scripts/test_tools.sh cargo    one tool
#
# The folder is $EQUIPOISE_TEST_TOOLS, by default ~/.cache/equipoise-test-tools. Tests download
# nothing; a test whose package is missing is skipped.
set -eu

tools=${EQUIPOISE_TEST_TOOLS:-$HOME/.cache/equipoise-test-tools}
root=$(cd "$(dirname "$0")/.." && pwd)

# A home of cargo with the crates of the example, and of the workspace of the tests.
install_cargo() {
    for workspace in docs/examples/suites/cargo \
        packages/equipoise/tests/suites/adapters/cargo_workspace; do
        CARGO_HOME=$tools/cargo cargo fetch --quiet --locked \
            --manifest-path "$root/$workspace/Cargo.toml"
    done
}

# Source packages of Debian 13, for a Debian of any version: $1 is the name and the version.
fetch_from_debian() {
    settings=$work/apt
    mkdir -p "$settings/lists/partial" "$settings/cache/archives/partial"
    keys=/usr/share/keyrings/debian-archive-keyring.gpg
    echo "deb-src [signed-by=$keys] http://deb.debian.org/debian trixie main" \
        >"$settings/sources.list"
    cat >"$settings/apt.conf" <<END
Dir::Etc::SourceList "$settings/sources.list";
Dir::Etc::SourceParts "-";
Dir::State::Lists "$settings/lists";
Dir::Cache "$settings/cache";
APT::Sandbox::User "root";
END
    (
        cd "$work"
        export APT_CONFIG="$settings/apt.conf"
        apt-get update -qq
        apt-get source -qq --download-only --tar-only "$1"
    )
}

# Debian 12 has Catch2 2, in the package catch2; this is version 3.
install_catch2() {
    work=$(mktemp -d)
    fetch_from_debian catch2
    mkdir -p "$tools/catch2"
    tar -xf "$work"/catch2_*.orig.tar.* -C "$tools/catch2" --strip-components 2 \
        --wildcards '*/extras/catch_amalgamated.*'
    c++ -std=c++17 -O1 -c "$tools/catch2/catch_amalgamated.cpp" \
        -o "$tools/catch2/catch_amalgamated.o"
    rm -r "$work"
}

# Debian has no package of nanobench, but the sources of litecoin have its header.
install_nanobench() {
    work=$(mktemp -d)
    fetch_from_debian litecoin
    mkdir -p "$tools/nanobench"
    tar -xf "$work"/litecoin_*.orig.tar.* -C "$tools/nanobench" --strip-components 3 \
        --wildcards '*/src/bench/nanobench.h'
    rm -r "$work"
}

mkdir -p "$tools"
[ $# -gt 0 ] || set -- cargo catch2 nanobench
for tool in "$@"; do
    case $tool in
    cargo | catch2 | nanobench) "install_$tool" ;;
    *)
        echo "test_tools.sh: there is no tool $tool" >&2
        exit 2
        ;;
    esac
done
