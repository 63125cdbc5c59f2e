#!/bin/sh
# Prints 60,000 letters that depend on EQUIPOISE_SEED alone.
exec awk -v seed="$EQUIPOISE_SEED" 'BEGIN {
    srand(seed)
    for (i = 0; i < 60000; i++) printf "%c", 97 + int(26 * rand())
    print ""
}'
