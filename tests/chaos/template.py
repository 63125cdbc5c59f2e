"""What every case begins with, made once and copied: scripts, ledgers, a repository and tables."""

from __future__ import annotations

import json
import random
import stat
import subprocess
from pathlib import Path

from packages.equipoise.tests.repositories import repository
from tests.chaos.workplace import ENTRY, Workplace, remove

TRIAL = """#!/bin/sh
echo s >> "$0.log"
sleep {seconds} &
wait
"""
"""Trial with a descendant. Its log counts how often it has started."""

STRAY = """#!/bin/sh
echo s >> "$0.log"
setsid sleep 3600 &
sleep {seconds}
"""
"""Trial that leaves a process in a session of its own."""

SERVER = """
import signal, socket, subprocess, sys
worker = subprocess.Popen(["sleep", "3600"])
signal.signal(signal.SIGTERM, lambda *_: (worker.kill(), sys.exit(0)))
listener = socket.create_server(("127.0.0.1", int(sys.argv[1])))
while True:
    line, _ = listener.accept()
    line.sendall(b"hello")
    line.close()
"""

CLIENT = """#!/bin/sh
sleep {seconds} &
wait
"""

STUDY = """
[study]
name = "chaos"
[workload.server]
start = ["{python}", "-S", "{study}/chaos-server", "{port}"]
client = ["{study}/chaos-client-quick"]
ready_s = 10
[factors.pace]
quick = {}
[factors.pace.slow.server]
start = ["{python}", "-S", "{study}/chaos-server", "{port}"]
client = ["{study}/chaos-client-slow"]
[measure]
blocks = 6
min_effect = 0.0
alpha = 1e-9
[compare]
factor = "pace"
baseline = "quick"
"""

BUILT_STUDY = """
[study]
name = "chaos-built"
[workload]
command = ["{build}/program"]
[factors.optimised]
no = { build = "./chaos-build $EQUIPOISE_BUILD 0.01" }
yes = { build = "./chaos-build $EQUIPOISE_BUILD 0.02" }
[measure]
blocks = 20
min_effect = 0.0
alpha = 1e-9
[compare]
factor = "optimised"
baseline = "no"
"""

BUILD = """#!/bin/sh
sleep 0.2 &
wait
printf '#!/bin/sh\\nsleep %s &\\nwait\\n' "$2" > "$1/program"
chmod +x "$1/program"
"""

GATE_BUILD = """#!/bin/sh
sleep 0.3 &
wait
cp source program
chmod +x program
"""

MAIN = """
#include <stdio.h>
int list(int);
int main(void) { printf("%d\\n", list(3)); return 0; }
"""
LIST = "int list(int n) { return n < 1 ? 0 : n + list(n - 1); }\n"

DECIDED = ("compare", "./chaos-trial-quick", "./chaos-trial-slow")
OPEN = ("--alpha", "1e-9", "--min-effect", "0")


def make(place: Workplace) -> None:
    """Make the template of a new workplace, at the path at which its cases run."""
    for made in (place.work, place.temporary, place.home):
        made.mkdir(parents=True)
    folder = place.work
    for name, seconds in (("quick", 0.01), ("slow", 0.03)):
        _script(folder / f"chaos-trial-{name}", TRIAL.format(seconds=seconds))
        _script(folder / f"chaos-stray-{name}", STRAY.format(seconds=seconds))
        _script(folder / f"chaos-client-{name}", CLIENT.format(seconds=seconds))
    (folder / "chaos-server").write_text(SERVER)
    _script(folder / "chaos-build", BUILD)
    (folder / "served.toml").write_text(STUDY)
    (folder / "built.toml").write_text(BUILT_STUDY)
    (folder / "main.c").write_text(MAIN)
    (folder / "list.c").write_text(LIST)
    _tables(folder)
    _repository(folder / "project")
    _searched_repository(folder / "searched")
    _equipoise(place, "layouts", "--count", "3", "--", "cc", "main.c", "list.c", "-o", "laid")
    _equipoise(place, "layouts", "--count", "3", "--", "cc", "-O2", "main.c", "list.c", "-o", "out")
    _equipoise(place, *DECIDED, "--quiet", "--min-effect", "0", "--ledger", "decided.db")
    _equipoise(place, *DECIDED, "--quiet", *OPEN, "--blocks", "3", "--ledger", "open.db")
    for log in folder.glob("*.log"):
        log.unlink()
    folder.rename(place.template)
    place.temporary.rmdir()
    remove(place.home)


def _script(file: Path, text: str) -> None:
    file.write_text(text)
    file.chmod(file.stat().st_mode | stat.S_IXUSR | stat.S_IXGRP | stat.S_IXOTH)


def _tables(folder: Path) -> None:
    drawn = random.Random(7)
    people = ["treat,age,educ,re74,re78"]
    for _ in range(300):
        age, educ, earned = drawn.randint(18, 60), drawn.randint(6, 16), drawn.gauss(9000, 3000)
        treated = int(drawn.random() < 0.2 + 0.3 * (educ > 11))
        people.append(f"{treated},{age},{educ},{earned:.0f},{earned + 500 * treated:.0f}")
    (folder / "people.csv").write_text("\n".join(people) + "\n")
    jobs = ["version,day,load,cache,host_type,wall_s"]
    for _ in range(400):
        version, load = drawn.choice(("1.0", "2.0")), drawn.random()
        wall = (1.0 + load) * (1.1 if version == "2.0" else 1.0) * drawn.lognormvariate(0, 0.05)
        kind = drawn.choice(("large", "small"))
        jobs.append(
            f"{version},{drawn.randint(1, 40)},{load:.3f},{drawn.randint(1, 9)},{kind},{wall:.4f}"
        )
    (folder / "jobs.csv").write_text("\n".join(jobs) + "\n")
    results = [
        {"command": name, "mean": at, "stddev": 0.01, "median": at, "user": 0.1, "system": 0.1,
         "min": at - 0.02, "max": at + 0.02, "exit_codes": [0] * 20,
         "times": [at + drawn.gauss(0, 0.01) for _ in range(20)]}
        for name, at in (("old", 0.5), ("new", 0.4))
    ]  # fmt: skip
    (folder / "hyperfine.json").write_text(json.dumps({"results": results}))


def _repository(path: Path) -> None:
    made = repository(path)
    made.write("build.sh", GATE_BUILD, executable=True)
    made.write("source", TRIAL.replace('echo s >> "$0.log"', ":").format(seconds=0.01))
    made.commit("the first")
    made.git("branch", "before")
    made.write("unused", "a change that changes no time\n")
    made.commit("the second")


def _searched_repository(path: Path) -> None:
    made = repository(path)
    made.write("build.sh", GATE_BUILD, executable=True)
    for number in range(5):
        trial = TRIAL.replace('echo s >> "$0.log"', f": {number}")
        made.write("source", trial.format(seconds=0.04 if number > 2 else 0.005))
        made.commit(f"change {number}")
        if not number:
            made.git("tag", "good")


def _equipoise(place: Workplace, *arguments: str) -> None:
    subprocess.run(
        [*ENTRY, *arguments],
        cwd=place.work,
        env=place.environment(),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        check=True,
    )
