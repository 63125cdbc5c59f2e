#!/bin/sh
# Fills the folder of the packages that live tests of benchmark tools need, from their registries:
#
#     scripts/test_tools.sh          all tools
#     scripts/test_tools.sh asv      one tool
#
# The folder is $EQUIPOISE_TEST_TOOLS, by default ~/.cache/equipoise-test-tools. Tests download
# nothing; a test whose package is missing is skipped.
set -eu

tools=${EQUIPOISE_TEST_TOOLS:-$HOME/.cache/equipoise-test-tools}
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

mkdir -p "$tools"
[ $# -gt 0 ] || set -- asv pytest
for tool in "$@"; do
    case $tool in
    asv | pytest) "install_$tool" ;;
    *)
        echo "test_tools.sh: there is no tool $tool" >&2
        exit 2
        ;;
    esac
done
