#!/bin/sh
# The Debian packages of tests/apt.txt: installs what is missing as root in a container,
# otherwise prints the one line that would. Never fails: the tests say what they miss.
set -u
cd "$(dirname "$0")/.." || exit 0

in_container() {
    [ -e /.dockerenv ] || [ -e /run/.containerenv ] || [ -n "${container:-}" ] ||
        grep -qsE 'docker|lxc|kubepods|containerd' /proc/1/cgroup
}

missing=""
while read -r package unless program; do
    case $(dpkg-query --show --showformat='${db:Status-Status}' "$package" 2>/dev/null) in
        installed) continue ;;
    esac
    [ "$unless" = unless ] && command -v "$program" >/dev/null && continue
    missing="$missing $package"
done <<LIST
$(sed -e 's/#.*//' -e '/^[[:space:]]*$/d' tests/apt.txt)
LIST
[ -n "$missing" ] || exit 0

if [ "$(id -u)" -eq 0 ] && in_container && command -v apt-get >/dev/null 2>&1; then
    echo "Installing the Debian packages that live tests need:$missing"
    export DEBIAN_FRONTEND=noninteractive
    # shellcheck disable=SC2086  # a list of package names
    { apt-get update -qq && apt-get install -y -qq --no-install-recommends $missing; } \
        </dev/null >/dev/null ||
        echo "apt-get failed: the live tests that need$missing will say so." >&2
else
    echo "For all live tests: sudo apt-get install --no-install-recommends$missing"
fi
