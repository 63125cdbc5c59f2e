#!/bin/sh
# Two real comparisons of real programs, for `make demo`.
set -eu
cd "$(dirname "$0")/.."
PATH="$PWD/.venv/bin:$PATH"
mkdir -p demo
export EQUIPOISE_LEDGER="$PWD/demo/ledger.db"
# Plain bytes: the order of a locale would dwarf what the threads do.
export LC_ALL=C.UTF-8

TUNABLES=glibc.malloc.mmap_threshold=15360:glibc.malloc.top_pad=0
MALLOC='equipoise-workload malloc --size 35840 --count 2000'

cat <<'WORDS'

1. malloc, touch and free of 35 KB blocks: glibc as it is, and glibc that goes to the kernel
   from 15 KB on, as Mac OS X did in 2006.

WORDS
equipoise compare --budget 20 -n glibc -n glibc_15k --env "2:GLIBC_TUNABLES=$TUNABLES" \
    "$MALLOC" "$MALLOC"

if [ ! -e demo/lines ]; then
    python scripts/demo_lines.py >demo/lines.new
    mv demo/lines.new demo/lines
fi
cat <<'WORDS'

2. GNU sort of demo/lines with one thread and with two.

WORDS
equipoise compare --budget 20 -n '1 thread' -n '2 threads' \
    'sort --parallel=1 --buffer-size=64M demo/lines' \
    'sort --parallel=2 --buffer-size=64M demo/lines'

echo
echo "Both campaigns are in demo/ledger.db: equipoise list runs --ledger demo/ledger.db"
