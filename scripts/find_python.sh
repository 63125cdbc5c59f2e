#!/bin/sh
# Prints the first Python 3.11 or later with venv, or nothing. $PYTHON is asked first.
for candidate in ${PYTHON:-} python3 python3.14 python3.13 python3.12 python3.11; do
    if "$candidate" -c 'import ensurepip, sys, venv; sys.exit(sys.version_info < (3, 11))' \
        2>/dev/null; then
        command -v "$candidate"
        exit 0
    fi
done
exit 1
