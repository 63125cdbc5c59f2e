"""Verify 60 patches whose answer is known, and replay each certificate in four surroundings.

::

    python -m benchmarks.verify --results FILE                 # all patches, all replays
    python -m benchmarks.verify --results FILE --of-each 2     # two patches of each kind
    python -m benchmarks.verify --results FILE --no-replays

Each answer and each replay is appended to the file at once, and those that the file has are not
measured again. Certificates are in ``FILE.certificates``. Prints the answers by kind of patch, and
how many certificates replicate in each of the surroundings. Ends with 1 if a wrong patch or a cheat
was certified, more than `MAX_CERTIFIED_NO_OPS` of the no-ops were, or fewer than `MIN_REPLICATED`
of the replays replicate.
"""

from __future__ import annotations

import argparse
import contextlib
import glob
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from benchmarks.verify.patches import CACHES, Files, Patch, patches

GIT = (
    *("git", "-c", "user.name=Ada", "-c", "user.email=ada@example.com"),
    *("-c", "commit.gpgsign=false", "-c", "init.defaultBranch=main"),
)
INPUT = "echo $EQUIPOISE_SEED"
ANSWERS = ("certified", "not faster", "wrong output", "cannot say")
MAX_CERTIFIED_NO_OPS = 0.05
MIN_REPLICATED = 0.95
ENVIRONMENT_BYTES = 3001
"""Size by which another layout enlarges the environment."""
QUOTA = "50000 100000"
"""Half of a CPU (cpu.max, cgroup v2)."""
CGROUPS = Path("/sys/fs/cgroup")
NOISE = "while :; do i=0; while [ $i -lt 40000 ]; do i=$((i+1)); done; sleep 0.1; done"
"""Generator of noise: bursts of work on one CPU."""


@dataclass(frozen=True)
class Surroundings:
    """One set of surroundings in which a certificate is replayed."""

    name: str
    options: tuple[str, ...] = ()
    """Arguments of `equipoise verify --replay`."""


SURROUNDINGS = (
    Surroundings("CPU quota"),
    Surroundings("one CPU"),
    Surroundings("another layout", ("--relink", "12")),
    Surroundings("noise"),
)


class Unavailable(Exception):
    """This host lacks a part of the surroundings."""


@contextlib.contextmanager
def within(name: str) -> Iterator[tuple[tuple[str, ...], Mapping[str, str]]]:
    """Set the surroundings up; yield the words before a command, and its additional variables.

    Raise `Unavailable` if this host cannot.
    """
    if name == "CPU quota":
        try:
            group = Path(tempfile.mkdtemp(prefix="equipoise-benchmark-", dir=CGROUPS))
        except OSError as error:
            raise Unavailable(f"no cgroup can be made: {error.strerror}") from error
        try:
            (group / "cpu.max").write_text(QUOTA)
            line = f'echo $$ > {group}/cgroup.procs && exec "$@"'
            yield ("sh", "-c", line, "sh"), {}
        except OSError as error:
            raise Unavailable(f"no quota can be set: {error.strerror}") from error
        finally:
            with contextlib.suppress(OSError):
                group.rmdir()
    elif name == "one CPU":
        if shutil.which("taskset") is None:
            raise Unavailable("no taskset")
        yield ("taskset", "--cpu-list", str(min(os.sched_getaffinity(0)))), {}
    elif name == "another layout":
        yield (), {"ANOTHER_LAYOUT": "x" * ENVIRONMENT_BYTES}
    else:
        noise = subprocess.Popen(["sh", "-c", NOISE])
        try:
            yield (), {}
        finally:
            noise.kill()
            noise.wait()


class Results:
    """The file of results: a line of JSON for each answer and each replay."""

    def __init__(self, file: Path) -> None:
        self._file = file
        lines = file.read_text().splitlines() if file.exists() else []
        self.known: dict[tuple[str, str], dict[str, Any]] = {}
        for line in lines:
            self._keep(json.loads(line))

    def add(self, result: dict[str, Any]) -> None:
        """Append a result."""
        with self._file.open("a") as stream:
            stream.write(json.dumps(result) + "\n")
        self._keep(result)

    def _keep(self, result: dict[str, Any]) -> None:
        self.known[result["patch"], result.get("surroundings", "")] = result


def write(files: Files, folder: Path) -> None:
    """Write the files of a commit."""
    for name, text in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)


def make_repository(patch: Patch, folder: Path) -> None:
    """Make a repository with the commits ``base`` and ``patch``, always with the same hashes."""
    folder.mkdir(parents=True)
    date = "2026-11-29T00:00:00Z"
    variables = {**os.environ, "GIT_AUTHOR_DATE": date, "GIT_COMMITTER_DATE": date}
    subprocess.run([*GIT, "init", "--quiet", "."], cwd=folder, check=True)
    for tag, files in (("base", patch.base), ("patch", patch.changed)):
        write(files, folder)
        for words in (("add", "--all"), ("commit", "--quiet", "-m", tag), ("tag", tag)):
            subprocess.run([*GIT, *words], cwd=folder, check=True, env=variables)


def run(words: Sequence[str], folder: Path, variables: Mapping[str, str]) -> dict[str, Any]:
    """Run ``equipoise verify``; return its answer as facts of a result."""
    result_file = folder / ".git/result.json"
    result_file.unlink(missing_ok=True)
    ledger = str(folder / ".git/ledger.db")
    output_options = ("--json", str(result_file), "--quiet", "--ledger", ledger)
    place = words.index("verify") + 1
    load, _, _ = os.getloadavg()
    began = time.perf_counter()
    done = subprocess.run(
        [*words[:place], *output_options, *words[place:]],
        cwd=folder,
        capture_output=True,
        text=True,
        env={**os.environ, **variables},
    )
    facts: dict[str, Any] = {
        "status": done.returncode,
        "seconds": round(time.perf_counter() - began, 1),
        "load": load,
    }
    if not result_file.exists():
        return {**facts, "answer": "error", "error": done.stderr[-500:]}
    document = json.loads(result_file.read_text())
    verify = document["verify"]
    return {
        **facts,
        "answer": verify["answer"],
        "summary": verify["summary"],
        "ratio": verify["ratio"],
        "ratio_ci": verify["ratio_ci"],
        "blocks": document["run"]["blocks"],
        "objections": verify["objections"],
        "replicates": None if verify["replay"] is None else verify["replay"]["replicates"],
    }


def verify_patch(
    patch: Patch, folder: Path, certificate: Path, options: argparse.Namespace
) -> dict[str, Any]:
    """Verify a patch; write its certificate if it is certified."""
    words = [
        *(
            "equipoise",
            "verify",
            "--baseline",
            "base",
            "--candidate",
            "patch",
            "--build",
            "make -s",
        ),
        *("--input-command", INPUT, "--relink", str(options.relink)),
        *("--budget", f"{options.budget:g}", "--certificate", str(certificate)),
    ]
    return run([*words, "--", "./program"], folder, {})


def print_table(results: Results, chosen: Sequence[Patch]) -> bool:
    """Print the answers by kind, and the replays; return whether both are as they must be."""
    answers: dict[str, Counter[str]] = defaultdict(Counter)
    replays: dict[str, Counter[str]] = defaultdict(Counter)
    surprises = []
    for patch in chosen:
        result = results.known.get((patch.name, ""))
        if result is None:
            continue
        answers[patch.kind][result["answer"]] += 1
        if result["answer"] not in patch.answers:
            reason = result.get("summary") or result.get("error", "")
            surprises.append(f"{patch.name}: {result['answer']}: {reason}")
        for surroundings in SURROUNDINGS:
            replay = results.known.get((patch.name, surroundings.name))
            if replay is not None:
                word = "unavailable" if replay["answer"] == "unavailable" else "does not replicate"
                replays[surroundings.name]["replicates" if replay.get("replicates") else word] += 1
    headings = (*ANSWERS, "error")
    print(f"{'kind':10}" + "".join(f"{heading:>14}" for heading in headings))
    for kind, counts in answers.items():
        print(f"{kind:10}" + "".join(f"{counts[heading]:14}" for heading in headings))
    for name, counts in replays.items():
        print(f"replays, {name}: " + ", ".join(f"{count} {word}" for word, count in counts.items()))
    for line in surprises:
        print(f"not as expected: {line}")
    tried = sum(counts["replicates"] + counts["does not replicate"] for counts in replays.values())
    replicated = sum(counts["replicates"] for counts in replays.values())
    no_ops = answers["no-op"]
    return (
        not answers["wrong"]["certified"]
        and not answers["cheat"]["certified"]
        and no_ops["certified"] <= MAX_CERTIFIED_NO_OPS * max(1, no_ops.total())
        and replicated >= MIN_REPLICATED * tried
    )


def main() -> int:
    """Verify the patches, replay the certificates and print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--results", type=Path, required=True)
    parser.add_argument("--of-each", type=int, help="patches of each kind; all without it")
    parser.add_argument("--budget", type=float, default=60.0)
    parser.add_argument("--relink", type=int, default=8)
    parser.add_argument("--no-replays", action="store_true")
    options = parser.parse_args()
    chosen: list[Patch] = []
    for kind in ("speed-up", "no-op", "wrong", "cheat"):
        of_kind = [patch for patch in patches() if patch.kind == kind]
        # The largest speed-ups come first, so that a short trial has clear ones.
        chosen += (of_kind[::-1] if kind == "speed-up" else of_kind)[: options.of_each]
    results = Results(options.results)
    certificates = Path(f"{options.results}.certificates")
    certificates.mkdir(exist_ok=True)
    for patch in chosen:
        certificate = certificates / patch.name
        with tempfile.TemporaryDirectory(prefix="equipoise-benchmark-") as name:
            folder = Path(name) / "project"
            make_repository(patch, folder)
            if (patch.name, "") not in results.known:
                facts = verify_patch(patch, folder, certificate, options)
                results.add({"patch": patch.name, "kind": patch.kind, **facts})
                print(f"{patch.name}: {facts['answer']} in {facts['seconds']} s", file=sys.stderr)
                for beginning in CACHES:
                    for file in glob.glob(f"{beginning}-*"):
                        Path(file).unlink()
            if certificate.exists() and not options.no_replays:
                replay_everywhere(patch, folder, certificate, results)
    return 0 if print_table(results, chosen) else 1


def replay_everywhere(patch: Patch, folder: Path, certificate: Path, results: Results) -> None:
    """Replay a certificate in each of the surroundings that the file of results lacks."""
    for surroundings in SURROUNDINGS:
        if (patch.name, surroundings.name) in results.known:
            continue
        head = {"patch": patch.name, "kind": patch.kind, "surroundings": surroundings.name}
        try:
            with within(surroundings.name) as (prefix, variables):
                words = (*prefix, "equipoise", "verify", "--replay", str(certificate))
                facts = run([*words, *surroundings.options], folder, variables)
        except Unavailable as error:
            facts = {"answer": "unavailable", "error": str(error)}
        results.add({**head, **facts})
        print(f"  {surroundings.name}: {facts.get('replicates')}", file=sys.stderr)


if __name__ == "__main__":
    sys.exit(main())
