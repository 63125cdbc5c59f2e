"""Repositories with planted steps: C programs, Rust crates and Python packages of 64 commits."""

from __future__ import annotations

import random
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

from msgspec import Struct

COMMITS = 64
BRANCH = 8
"""Commits of a branch that is merged."""
AHEAD = 4
"""First-parent commits between the start of a branch and its merge."""
APART = 6
"""Least number of commits from one step to the next, and to both ends."""
SETTINGS = (
    *("-c", "user.name=Ada", "-c", "user.email=ada@example.com", "-c", "commit.gpgsign=false"),
    *("-c", "gc.auto=0", "-c", "advice.detachedHead=false"),
)

C_SOURCE = """/* Revised by change {comment}. */
#include <stdint.h>
{broken}
int main(void) {{
    uint64_t x = 88172645463325252u;
    for (uint64_t i = 0; i < {rounds}u; i++) {{
        x ^= x << 13; x ^= x >> 7; x ^= x << 17;
    }}
    return x == 0;
}}
"""
C_SPARE = "unsigned spare(unsigned x) {{ return x * {spare}u + 1u; }}\n"
# The loop waits for its own results, so how the program is laid out makes no difference to it.
MAKEFILE = """bench: bench.c spare.c Makefile
\t@cc -O2 -falign-loops=64 -o bench bench.c spare.c
"""

CARGO = '[package]\nname = "bench"\nversion = "0.1.0"\nedition = "2021"\n'
CARGO_LOCK = 'version = 3\n\n[[package]]\nname = "bench"\nversion = "0.1.0"\n'
RUST_SOURCE = """// Revised by change {comment}.
mod spare;
{broken}
fn main() {{
    let mut x: u64 = 88172645463325252;
    for _ in 0..{rounds}u64 {{
        x ^= x << 13;
        x ^= x >> 7;
        x ^= x << 17;
    }}
    std::process::exit(i32::from(x == 0));
}}
"""
RUST_SPARE = """#[allow(dead_code)]
pub fn spare(x: u32) -> u32 {{
    x.wrapping_mul({spare})
}}
"""

PYTHON_SOURCE = """# Revised by change {comment}.
from program import spare  # noqa: F401
{broken}

def work() -> int:
    x = 88172645463325252
    for _ in range({rounds}):
        x = (x * 6364136223846793005 + 1442695040888963407) & 0xFFFFFFFFFFFFFFFF
    return x
"""
PYTHON_SPARE = "def spare(x: int) -> int:\n    return x * {spare}\n"
PYTHON_MAIN = "from program.work import work\n\nwork()\n"


class Language(Struct, frozen=True):
    """What a program is written in, and how it is built and run."""

    name: str
    command: tuple[str, ...]
    build: str | None
    """Line for a shell."""
    templates: Mapping[str, str]
    """Files with places for ``rounds``, ``comment``, ``spare`` and ``broken``."""
    constant: Mapping[str, str]
    """Files that are the same in each commit."""
    broken: str
    """Line that keeps the program from being built, or from running."""
    seconds: float
    """Run time of the good commit."""
    probe: int
    """Rounds that take some milliseconds on any machine."""

    def files(self, rounds: int, comment: int, spare: int, *, broken: bool = False) -> list[File]:
        """Return all files of one commit."""
        values = {
            "rounds": rounds,
            "comment": comment,
            "spare": spare,
            "broken": self.broken if broken else "",
        }
        filled = {name: text.format(**values) for name, text in self.templates.items()}
        return [File(name, text) for name, text in {**self.constant, **filled}.items()]


class File(Struct, frozen=True):
    """A text file in a repository."""

    name: str
    text: str


LANGUAGES = {
    "c": Language(
        name="C program",
        command=("./bench",),
        build="make --silent",
        templates={"bench.c": C_SOURCE, "spare.c": C_SPARE},
        constant={"Makefile": MAKEFILE, ".gitignore": "bench\n"},
        broken="#error broken",
        seconds=0.03,
        probe=2_000_000,
    ),
    "rust": Language(
        name="Rust crate",
        command=("./target/release/bench",),
        build="cargo build --release --quiet --offline --locked",
        templates={"src/main.rs": RUST_SOURCE, "src/spare.rs": RUST_SPARE},
        constant={"Cargo.toml": CARGO, "Cargo.lock": CARGO_LOCK, ".gitignore": "target\n"},
        broken='compile_error!("broken");',
        seconds=0.03,
        probe=2_000_000,
    ),
    "python": Language(
        name="Python package",
        command=(str(Path(sys.executable).resolve()), "-S", "-m", "program"),
        build=None,
        templates={"program/work.py": PYTHON_SOURCE, "program/spare.py": PYTHON_SPARE},
        constant={
            "program/__init__.py": "",
            "program/__main__.py": PYTHON_MAIN,
            ".gitignore": "__pycache__\n",
        },
        broken="def broken(:",
        seconds=0.04,
        probe=40_000,
    ),
}


class Scenario(Struct, frozen=True):
    """What is planted in a repository."""

    name: str
    steps: tuple[float, ...]
    """Percent of the good commit's time that each step adds."""
    broken: int = 0
    """Commits that do not build; one of them is the parent of the first step."""
    merged: bool = False
    """Whether the step is inside a branch."""


SCENARIOS = (
    Scenario("20 %", (20.0,)),
    Scenario("5 % in a merged branch", (5.0,), merged=True),
    Scenario("two steps of 5 %", (5.0, 5.0)),
    Scenario("5 %, five do not build", (5.0,), broken=5),
    Scenario("3 %", (3.0,)),
    Scenario("5 %", (5.0,)),
    Scenario("+5 %, reverted, +5 %", (5.0, -5.0, 5.0)),
)


class History(Struct, frozen=True):
    """A repository, and the truth about it."""

    folder: Path
    good: str
    bad: str
    labels: Mapping[str, str]
    """Place of each commit, by its whole name: ``17``, or ``b3`` on a branch."""
    steps: frozenset[str]
    """First-parent commits that differ from their parent."""
    inner: frozenset[str] = frozenset()
    """Commits of the merged branch that do."""


def history(
    folder: Path,
    language: Language,
    scenario: Scenario,
    rounds_at: Callable[[float], int],
    seed: int,
) -> History:
    """Make a repository in a new folder, its working tree at the last commit.

    Parameters
    ----------
    rounds_at
        Rounds of the program's loop that take so many percent longer than the good commit.
    """
    random_places = random.Random(seed)
    places = _places(len(scenario.steps), random_places)
    step_at = dict(zip(places, scenario.steps, strict=True))
    broken = _broken(scenario.broken, places, random_places)
    inner_place = random_places.randrange(2, BRANCH)
    folder.mkdir(parents=True)
    git(folder, "init", "--quiet", "--initial-branch=main", ".")
    labels: dict[str, str] = {}
    inner: set[str] = set()
    level, comment, spare = 0.0, 0, 0

    def write(*, is_broken: bool = False) -> None:
        files = language.files(rounds_at(level), comment, spare, broken=is_broken)
        for file in files:
            path = folder / file.name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(file.text, encoding="utf-8")
        git(folder, "add", "--all")

    def commit(label: str, *parents: str) -> str:
        """Commit what is staged as a child of some commits; HEAD goes there."""
        tree = git(folder, "write-tree").strip()
        on_top_of = [word for parent in parents for word in ("-p", parent)]
        name = git(folder, "commit-tree", tree, *on_top_of, "-m", f"change {label}").strip()
        git(folder, "reset", "--quiet", "--soft", name)
        labels[name] = label
        return name

    def turn(number: int) -> None:
        """Change a comment or the unused function: nothing that runs."""
        nonlocal comment, spare
        comment, spare = (number, spare) if number % 2 else (comment, number)

    write()
    good = commit("0")
    steps: set[str] = set()
    parents: tuple[str, ...]
    for place in range(1, COMMITS + 1):
        turn(place)
        if scenario.merged and place == places[0]:
            git(folder, "checkout", "--quiet", "-b", "side", f"HEAD~{AHEAD}")
            for number in range(1, BRANCH + 1):
                turn(100 + number)
                level += scenario.steps[0] if number == inner_place else 0.0
                write()
                name = commit(f"b{number}", "HEAD")
                if number == inner_place:
                    inner.add(name)
            git(folder, "checkout", "--quiet", "main")
            parents = ("HEAD", "side")
        else:
            level += step_at.get(place, 0.0)
            parents = ("HEAD",)
        write(is_broken=place in broken)
        name = commit(str(place), *parents)
        if place in step_at:
            steps.add(name)
    return History(folder, good, name, labels, frozenset(steps), frozenset(inner))


def pace(folder: Path, language: Language) -> Callable[[float], int]:
    """Return how many rounds take so many percent longer than the good commit, on this machine."""
    folder.mkdir(parents=True)
    counts = (language.probe, 11 * language.probe)
    least, most = (_least_seconds(folder / str(count), language, count) for count in counts)
    per_round = (most - least) / (counts[1] - counts[0])
    start = least - per_round * counts[0]

    def rounds_at(percent: float) -> int:
        return round((language.seconds * (1.0 + percent / 100.0) - start) / per_round)

    return rounds_at


def git(folder: Path, *words: str) -> str:
    """Run git in a folder; return what it printed."""
    done = subprocess.run(
        ["git", *SETTINGS, *words], cwd=folder, stdout=subprocess.PIPE, text=True, check=True
    )
    return done.stdout


def _places(count: int, random_places: random.Random) -> list[int]:
    """Return places of steps in a random order of gaps, none close to another or to an end."""
    free = COMMITS - (count + 1) * APART
    cuts = sorted(random_places.randint(0, free) for _ in range(count))
    return [cut + (number + 1) * APART for number, cut in enumerate(cuts)]


def _broken(count: int, places: list[int], random_places: random.Random) -> set[int]:
    if not count:
        return set()
    others = set(range(2, COMMITS - 1)) - {places[0], places[0] - 1}
    return {places[0] - 1, *random_places.sample(sorted(others), count - 1)}


def _least_seconds(folder: Path, language: Language, rounds: int) -> float:
    for file in language.files(rounds, 0, 0):
        path = folder / file.name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(file.text, encoding="utf-8")
    if language.build is not None:
        subprocess.run(language.build, shell=True, cwd=folder, check=True)
    return min(_seconds_of_runs(folder, language))


def _seconds_of_runs(folder: Path, language: Language) -> Iterator[float]:
    for _ in range(9):
        began = time.perf_counter()
        subprocess.run(language.command, cwd=folder, check=True)
        yield time.perf_counter() - began
