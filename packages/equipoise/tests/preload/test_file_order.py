"""The order of files, held in real programs."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from packages.equipoise.tests.programs import finished

NAMES = [f"{number * 7919 % 1000:03d}-{'x' * (number % 40)}" for number in range(300)]

POSITIONS = r"""
#define _DEFAULT_SOURCE
#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
int main(int count, char **words) {
    (void)count;
    DIR *folder = opendir(words[1]);
    struct dirent *entry;
    char third[300] = "";
    long place = -1;
    int number = 0;
    errno = 7;
    while ((entry = readdir(folder)) != NULL) {
        if (++number == 3) snprintf(third, sizeof third, "%s", entry->d_name);
        if (number == 2) place = telldir(folder);
    }
    printf("%d entries, errno %d\n", number, errno);
    seekdir(folder, place);
    printf("%d\n", strcmp(readdir(folder)->d_name, third));
    rewinddir(folder);
    printf("%s\n", readdir(folder)->d_name);
    closedir(folder);
    struct dirent **found;
    int entries = scandir(words[1], &found, NULL, NULL);
    for (int one = 0; one < entries; one++) printf("%s\n", found[one]->d_name);
    entries = scandir("/no/such/folder", &found, NULL, NULL);
    printf("%d %d\n", entries, errno == ENOENT);
    return 0;
}
"""

MANY_STREAMS = """
import os, sys, threading
names = sorted(os.listdir(sys.argv[1]))
def work():
    for _ in range(40):
        assert os.listdir(sys.argv[1]) == names
        with os.scandir(sys.argv[1]) as entries:
            assert next(entries).name == names[0]
threads = [threading.Thread(target=work) for _ in range(4)]
for thread in threads: thread.start()
for thread in threads: thread.join()
child = os.fork()
if child == 0:
    os._exit(0 if os.listdir(sys.argv[1]) == names else 1)
print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Files whose names are in no order."""
    made = tmp_path / "folder"
    made.mkdir()
    for name in NAMES:
        (made / name).write_text("")
    return made


@pytest.fixture
def library(native_folder: Path) -> Path:
    return native_folder / "libequipoise_file_order.so"


def held(library: Path, *command: str) -> list[str]:
    """The lines that a command prints under the library, which must say nothing itself."""
    done = finished(command, env=os.environ | {"LD_PRELOAD": str(library)})
    assert (done.returncode, done.stderr) == (0, "")
    return done.stdout.splitlines()


def test_a_program_that_sorts_nothing_gets_names_in_order(library: Path, folder: Path) -> None:
    assert held(library, "ls", "-U", str(folder)) == sorted(NAMES)


def test_an_interpreter_gets_them_in_order(library: Path, folder: Path) -> None:
    program = "import os, sys; print(*os.listdir(sys.argv[1]), sep='\\n')"
    assert held(library, sys.executable, "-S", "-c", program, str(folder)) == sorted(NAMES)


def test_many_streams_and_threads_each_keep_their_place(library: Path, folder: Path) -> None:
    python = [sys.executable, "-W", "ignore::DeprecationWarning", "-c", MANY_STREAMS]
    assert held(library, *python, str(folder)) == ["0"]


def test_a_folder_without_files_is_empty(library: Path, tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    assert held(library, "ls", "-U", str(tmp_path / "empty")) == []


def test_what_is_made_between_two_readings_is_found(library: Path, tmp_path: Path) -> None:
    program = "import os, sys\nfor name in 'ba': open(name, 'w').close(); print(*os.listdir('.'))"
    done = finished(
        [sys.executable, "-S", "-c", program],
        cwd=tmp_path,
        env=os.environ | {"LD_PRELOAD": str(library)},
        check=True,
    )
    assert done.stdout.splitlines() == ["b", "a b"]


@pytest.mark.live("cc", package="gcc")
def test_places_errors_and_scandir_are_those_of_posix(
    library: Path, folder: Path, tmp_path: Path
) -> None:
    (tmp_path / "positions.c").write_text(POSITIONS)
    program = str(tmp_path / "positions")
    subprocess.run(["cc", "-o", program, str(tmp_path / "positions.c")], check=True)
    everything = sorted([*NAMES, ".", ".."])
    assert held(library, program, str(folder)) == [
        f"{len(everything)} entries, errno 7",
        "0",
        everything[0],
        *everything,
        "-1 1",
    ]


def test_a_name_that_is_no_text_is_a_name_like_others(library: Path, tmp_path: Path) -> None:
    place = tmp_path / "bytes"
    place.mkdir()
    for name in (b"\xff", b"a", b"\x01"):
        (place / os.fsdecode(name)).write_text("")
    done = subprocess.run(
        ["ls", "-U", "--quoting-style=literal", "--show-control-chars", str(place)],
        env=os.environ | {"LD_PRELOAD": str(library)},
        capture_output=True,
        check=True,
    )
    assert done.stdout == b"\x01\na\n\xff\n"
