"""How often 1 % more work is found in 3 s, and how often equal kernels are called different.

    python -m benchmarks.functions_of_revisions.run                  # for 6 minutes
    python -m benchmarks.functions_of_revisions.run --seconds 600    # go on for longer
    python -m benchmarks.functions_of_revisions.run --summary        # only count

Each of thirty kernels is a shared library. `slower` does 101 units of work in place of 100. `equal`
has two more functions and a table that nobody uses, before and behind the kernel. A gate has a
budget of 3 s and the smallest effect 0, so that every difference counts. Results are appended to a
file, and a call goes on where the last one stopped. Nothing else should run meanwhile.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from datetime import datetime
from pathlib import Path
from typing import Any

from benchmarks.functions.run import bound
from benchmarks.functions_of_revisions.kernels import BODIES, UNITS, source_of

ROOT = Path(__file__).resolve().parents[2]
HEADER = ROOT / "packages/equipoise/src/equipoise/helpers/equipoise_functions.h"
BUDGET_S = 3.0
GIT = ("git", "-c", "user.name=Ada", "-c", "user.email=ada@example.com")
REVISIONS = {
    "base": f"-DUNITS={UNITS}",
    "equal": f"-DUNITS={UNITS} -DUNUSED=37",
    "slower": f"-DUNITS={UNITS + 1}",
}
"""Macros of each revision."""


def main() -> None:
    """Run the command line."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--seconds", type=float, default=360.0)
    parser.add_argument("--repeats", type=int, default=2)
    parser.add_argument("--summary", action="store_true")
    folder = ROOT / "target/functions-of-revisions"
    parser.add_argument("--results", type=Path, default=folder / "results.jsonl")
    parser.add_argument("--one-link", action="store_true", help="without links of each block")
    options = parser.parse_args()
    folder.mkdir(parents=True, exist_ok=True)
    if not options.summary:
        measure(folder, options)
    summarise(read(options.results))


def measure(folder: Path, options: argparse.Namespace) -> None:
    """Run gates that the file lacks, until the time is over."""
    project = made_project(folder / "project")
    done = {(row["kernel"], row["variant"], row["repeat"]) for row in read(options.results)}
    end = time.monotonic() + options.seconds
    with options.results.open("a") as stream:
        for kernel, variant, repeat in wanted(options.repeats):
            if time.monotonic() > end:
                return
            if (kernel, variant, repeat) in done:
                continue
            row = gate(project, folder, kernel, variant, repeat, one_link=options.one_link)
            stream.write(json.dumps(row) + "\n")
            stream.flush()


def wanted(repeats: int) -> Iterator[tuple[str, str, int]]:
    """Yield every gate: the kernels, both variants, and the repeat, which gives the seed."""
    for repeat in range(repeats):
        for kernel in BODIES:
            for variant in ("slower", "equal"):
                yield kernel, variant, repeat


def made_project(folder: Path) -> Path:
    """Return a repository with the revisions as tags."""
    if (folder / "complete").exists():
        return folder
    subprocess.run(["rm", "-rf", folder], check=True)
    folder.mkdir(parents=True)

    def run(*words: str) -> None:
        subprocess.run(words, cwd=folder, check=True, capture_output=True)

    run(*GIT, "init", "--quiet", "--initial-branch=main", ".")
    (folder / HEADER.name).write_text(HEADER.read_text())
    for name in BODIES:
        (folder / f"{name}.c").write_text(source_of(name))
    (folder / "Makefile").write_text(
        "include flags.mk\nall: $(patsubst %.c,lib%.so,$(wildcard *.c))\n"
        "lib%.so: %.c\n\t$(CC) -O2 -fPIC -shared $(FLAGS) -o $@ $<\n"
    )
    for revision, flags in REVISIONS.items():
        (folder / "flags.mk").write_text(f"FLAGS = {flags}\n")
        run(*GIT, "add", "--all")
        run(*GIT, "commit", "--quiet", "-m", revision)
        run(*GIT, "tag", revision)
    (folder / ".git/info/exclude").write_text("complete\n")
    (folder / "complete").touch()
    return folder


def gate(
    project: Path, folder: Path, kernel: str, variant: str, repeat: int, *, one_link: bool
) -> dict[str, Any]:
    """Run one gate, and return its outcome and its seconds."""
    environment = {**os.environ, "EQUIPOISE_BUILDS": str(folder / "builds")}
    build = "make -s"
    if one_link:
        # Stripped files are no outputs of a link, so that they cannot be linked again.
        build += " && strip --strip-unneeded *.so"
    command = (
        *(sys.executable, "-m", "equipoise.cli", "gate", "--allow-concurrent"),
        *("--baseline", "base", "--candidate", variant, "--build", build, "--min-effect", "0"),
        *("--functions", f"./lib{kernel}.so", "--budget", f"{BUDGET_S:g}", f"--seed={repeat + 1}"),
        *("--ledger", str(folder / "ledger.db"), "--json", "-", "--quiet"),
    )
    began = time.monotonic()
    done = subprocess.run(
        command, cwd=project, env=environment, capture_output=True, text=True, check=False
    )
    seconds = time.monotonic() - began
    key = {"kernel": kernel, "variant": variant, "repeat": repeat}
    if done.returncode not in (0, 1):
        raise SystemExit(f"{key}: {done.stderr}")
    result = json.loads(done.stdout)
    (row,) = result["gate"]["rows"]
    return {
        **key,
        "outcome": row["outcome"],
        "ratio": row["ratio"],
        "ratio_ci": row["ratio_ci"],
        "blocks": row["blocks"],
        "campaign_s": span_s(result["run"]),
        "command_s": seconds,
        "relinked": result["gate"]["relinking"] is not None,
    }


def span_s(run: dict[str, Any]) -> float:
    """Return the seconds of a campaign."""
    began, ended = (datetime.fromisoformat(run[name]) for name in ("started", "ended"))
    return (ended - began).total_seconds()


def read(path: Path) -> list[dict[str, Any]]:
    """Return the rows of a file of results; none if it does not exist."""
    return [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []


def summarise(rows: Sequence[dict[str, Any]]) -> None:
    """Print what was found, and what was called different."""
    for variant in ("slower", "equal"):
        some = [row for row in rows if row["variant"] == variant]
        if not some:
            continue
        slower = [row for row in some if row["outcome"] == "slower"]
        faster = [row for row in some if row["outcome"] == "passes"]
        seconds = sorted(row["campaign_s"] for row in some)
        blocks = sorted(row["blocks"] for row in some)
        text = (
            f"{variant}: {len(slower)} of {len(some)} gates say slower, {len(faster)} say faster "
            f"({len({row['kernel'] for row in some})} kernels)"
        )
        if variant == "equal":
            text += f"; at most {bound(len(some))} slower are in line with 5 %"
        print(
            f"{text}; median {seconds[len(seconds) // 2]:.2f} s and "
            f"{blocks[len(blocks) // 2]} processes"
        )
        if variant == "slower":
            print("  not found:", ", ".join(r["kernel"] for r in some if r not in slower) or "none")


if __name__ == "__main__":
    main()
