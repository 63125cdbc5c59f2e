"""``python -m tests.fuzz``: many random cases, a table of what happened, finds as files."""

from __future__ import annotations

import argparse
import os
import random
import re
import resource
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from tests.fuzz.case import CORPUS, Case, Target, generator_of, to_json
from tests.fuzz.supervisor import CHUNK, Find, Tally, run_requests
from tests.fuzz.targets import TARGETS

CASES = 30_000
SECONDS = 600.0


def main(arguments: Sequence[str]) -> int:
    """Run the cases; exit 1 if there is a find."""
    options = _options(arguments)
    chosen = [TARGETS[name] for name in options.target or TARGETS]
    seed = random.SystemRandom().randrange(2**32) if options.seed is None else options.seed
    print(f"seed {seed}: python -m tests.fuzz --seed {seed} makes the same cases again", flush=True)
    began = time.monotonic()
    with tempfile.TemporaryDirectory(prefix="fuzz-") as folder:
        tallies = run_requests(
            requests_for(chosen, options.cases, seed),
            Path(folder),
            workers=options.workers,
            seconds=options.seconds,
        )
    took = time.monotonic() - began
    print_table(chosen, tallies)
    total = sum(one.cases for one in tallies.values())
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    print(
        f"\n{total:,} cases in {took:.0f} s on {options.workers} processes, "
        f"{used.ru_utime + used.ru_stime:.0f} s of processor time"
    )
    finds = [find for tally in tallies.values() for find in tally.finds]
    for path in save_finds(finds, seed, options.corpus):
        print(f"find: {path}")
    return 1 if finds else 0


def requests_for(targets: Sequence[Target], cases: int, seed: int) -> list[dict[str, Any]]:
    """Split the cases among the targets by their shares, in an order that mixes the targets."""
    shares = sum(one.share for one in targets)
    requests = []
    for target in targets:
        count = max(1, round(cases * target.share / shares))
        for first in range(0, count, CHUNK):
            request = {
                "target": target.name,
                "seed": seed,
                "first": first,
                "count": min(CHUNK, count - first),
                "minimise": True,
            }
            requests.append((first / count, request))
    return [request for _, request in sorted(requests, key=lambda one: one[0])]


def print_table(targets: Sequence[Target], tallies: dict[str, Tally]) -> None:
    """Print the table of results as Markdown."""
    print("| what is fuzzed | cases | read | refused in a line or two | finds |")
    print("| --- | ---: | ---: | ---: | ---: |")
    for target in targets:
        one = tallies.get(target.name, Tally())
        print(
            f"| {target.describes} | {one.cases:,} | {one.read:,} | {one.refused:,} "
            f"| {len(one.signatures())} |"
        )


def save_finds(finds: Sequence[Find], seed: int, corpus: Path) -> list[Path]:
    """Write the smallest case of each defect into the corpus and print what is known of it."""
    smallest: dict[tuple[str, str], tuple[Find, Case]] = {}
    counts: dict[tuple[str, str], int] = {}
    for find in finds:
        key = (find.target, find.outcome.signature)
        counts[key] = counts.get(key, 0) + 1
        case = find.case
        if case is None:
            case = TARGETS[find.target].make(generator_of(seed, find.target, find.number))
        if key not in smallest or len(case.content) < len(smallest[key][1].content):
            smallest[key] = (find, case)
    written = []
    for key, (find, case) in smallest.items():
        print(f"\n{find.target} {find.number}: {find.outcome.signature} ({counts[key]} cases)")
        print(find.outcome.detail)
        folder = corpus / find.target
        folder.mkdir(parents=True, exist_ok=True)
        slug = re.sub(r"[^a-z0-9]+", "_", find.outcome.signature.lower()).strip("_")[:70]
        path = folder / f"{slug}.json"
        path.write_text(to_json(case, find.outcome.signature))
        written.append(path)
    return written


def _options(arguments: Sequence[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m tests.fuzz", description=__doc__)
    parser.add_argument("--cases", type=int, default=CASES, help="in all, at most (%(default)s)")
    parser.add_argument(
        "--seconds", type=float, default=SECONDS, help="no request after these (%(default)g)"
    )
    parser.add_argument("--seed", type=int, help="of every case; drawn by default")
    parser.add_argument("--target", action="append", choices=list(TARGETS), help="again for more")
    parser.add_argument(
        "--workers", type=int, default=len(os.sched_getaffinity(0)), help="processes (%(default)s)"
    )
    parser.add_argument(
        "--corpus", type=Path, default=CORPUS, help="where finds are written (%(default)s)"
    )
    return parser.parse_args(arguments)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
