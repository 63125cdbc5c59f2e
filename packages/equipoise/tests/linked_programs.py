"""C programs whose links differ in the places of their functions, which each trial reports."""

from __future__ import annotations

import shutil
from collections.abc import Sequence
from pathlib import Path

import pytest

from packages.equipoise.tests.repositories import MadeRepository, repository

PROGRAM = """\
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>
int first(int x) { return 3 * x + 1; }
int second(int x) { return x ^ 5; }
int third(int x) { return x - 7; }
int fourth(int x);
int main(void) {
    usleep(1000 * MILLISECONDS);
    FILE *log = fopen(getenv("LOG"), "a");
    int sum = 0;
    for (int i = 0; i < 100; i++) sum += first(i) + second(i) + third(i) + fourth(i);
    fprintf(log, "%s %ld %ld %ld\\n", REVISION, (long)((char *)second - (char *)first),
            (long)((char *)third - (char *)first), (long)((char *)fourth - (char *)first));
    return fclose(log);
}
"""
MAKEFILE = """\
CFLAGS = -O1 -fno-inline
bench: program.o fourth.o
\t$(CC) -o bench program.o fourth.o
"""
needs_lld = pytest.mark.skipif(
    shutil.which("ld.lld") is None and shutil.which("rustc") is None,
    reason="misses ld.lld (package lld)",
)


def linked_project(folder: Path, revisions: Sequence[tuple[str, int]]) -> MadeRepository:
    """A C program of two files, and a tag for each revision: its name and its milliseconds.

    The program writes its revision and the places of its functions to the file ``$LOG``.
    """
    project = repository(folder)
    project.write("Makefile", MAKEFILE)
    project.write("fourth.c", "int fourth(int x) { return x & 3; }\n")
    for name, milliseconds in revisions:
        head = f'#define REVISION "{name}"\n#define MILLISECONDS {milliseconds}\n'
        project.write("program.c", head + PROGRAM)
        project.commit(name)
        project.git("tag", name)
    return project


def places_of(log: Path, revision: str) -> set[str]:
    """The different places of functions that trials of a revision reported."""
    return {line for line in log.read_text().splitlines() if line.split()[0] == revision}
