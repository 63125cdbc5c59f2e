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
examples=$(cd "$(dirname "$0")/../docs/examples/suites" && pwd)

# A local repository of Maven with JMH, and with the plugins that build its example.
install_jmh() {
    work=$(mktemp -d)
    cp -r "$examples/jmh/." "$work"
    mvn -q -B -f "$work/pom.xml" -Dmaven.repo.local="$tools/maven" -DskipTests package
    rm -r "$work"
}

mkdir -p "$tools"
[ $# -gt 0 ] || set -- jmh
for tool in "$@"; do
    case $tool in
    jmh) "install_$tool" ;;
    *)
        echo "test_tools.sh: there is no tool $tool" >&2
        exit 2
        ;;
    esac
done
