"""Repositories with planted steps: C programs, Rust crates and Python packages of 64 commits."""

from __future__ import annotations

import random
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path

from msgspec import Struct

COMMITS = 64
BRANCH = 8
"""Commits of a branch that is merged."""
AHEAD = 4
"""First-parent commits between the start of a branch and its merge."""
APART = 6
"""Least number of commits from one step to the next, and to both ends."""
FIRST_SECOND = 1_700_000_000
"""Seconds since 1970 before the first commit."""

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
    draw = random.Random(seed)
    places = _places(len(scenario.steps), draw)
    step_at = dict(zip(places, scenario.steps, strict=True))
    broken = _broken(scenario.broken, places, draw)
    inner_place = draw.randrange(2, BRANCH)
    stream = _Stream()
    level, comment, spare = 0.0, 0, 0
    steps: list[int] = []
    inner: list[int] = []

    def commit(branch: str, label: str, parents: Sequence[int], *, is_broken: bool = False) -> int:
        files = language.files(rounds_at(level), comment, spare, broken=is_broken)
        return stream.commit(branch, label, parents, files)

    def turn(number: int) -> None:
        """Change a comment or the unused function: nothing that runs."""
        nonlocal comment, spare
        comment, spare = (number, spare) if number % 2 else (comment, number)

    line = [commit("main", "0", ())]
    for place in range(1, COMMITS + 1):
        parents = [line[-1]]
        if scenario.merged and place == places[0]:
            tip = line[-1 - AHEAD]
            for number in range(1, BRANCH + 1):
                turn(COMMITS + number)
                level += scenario.steps[0] if number == inner_place else 0.0
                tip = commit("side", f"b{number}", [tip])
                inner += [tip] if number == inner_place else []
            parents.append(tip)
        else:
            level += step_at.get(place, 0.0)
        turn(place)
        line.append(commit("main", str(place), parents, is_broken=place in broken))
        steps += [line[-1]] if place in step_at else []
    names = stream.write(folder)
    return History(
        folder,
        good=names[line[0]],
        bad=names[line[-1]],
        labels={names[mark]: label for mark, label in stream.labels.items()},
        steps=frozenset(names[mark] for mark in steps),
        inner=frozenset(names[mark] for mark in inner),
    )


class _Stream:
    """Commits for `git fast-import`, each with all of its files."""

    def __init__(self) -> None:
        self.labels: dict[int, str] = {}
        """By the mark of the commit, from 1."""
        self._text: list[str] = []

    def commit(self, branch: str, label: str, parents: Sequence[int], files: Sequence[File]) -> int:
        """Add a commit on top of others; return its mark."""
        mark = len(self.labels) + 1
        self.labels[mark] = label
        self._text += [
            f"commit refs/heads/{branch}\nmark :{mark}\n",
            f"committer Ada <ada@example.com> {FIRST_SECOND + mark} +0000\n",
            _data(f"change {label}\n"),
            *(f"{'merge' if place else 'from'} :{one}\n" for place, one in enumerate(parents)),
            "deleteall\n",
            *(f"M 100644 inline {file.name}\n{_data(file.text)}" for file in files),
        ]
        return mark

    def write(self, folder: Path) -> dict[int, str]:
        """Make the repository, its working tree at ``main``; return the names of its commits."""
        folder.mkdir(parents=True)
        git(folder, "init", "--quiet", "--initial-branch=main", ".")
        subprocess.run(
            ["git", "fast-import", "--quiet", "--export-marks=.git/marks"],
            cwd=folder,
            input="".join(self._text),
            text=True,
            check=True,
        )
        git(folder, "reset", "--quiet", "--hard", "main")
        marks = (folder / ".git" / "marks").read_text(encoding="ascii").splitlines()
        return {int(mark.removeprefix(":")): name for mark, name in map(str.split, marks)}


def _data(text: str) -> str:
    return f"data {len(text.encode())}\n{text}\n"


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
        ["git", *words], cwd=folder, stdout=subprocess.PIPE, text=True, check=True
    )
    return done.stdout


def _places(count: int, draw: random.Random) -> list[int]:
    """Return random places of steps, none close to another or to an end."""
    free = COMMITS - (count + 1) * APART
    cuts = sorted(draw.randint(0, free) for _ in range(count))
    return [cut + (number + 1) * APART for number, cut in enumerate(cuts)]


def _broken(count: int, places: list[int], draw: random.Random) -> set[int]:
    if not count:
        return set()
    others = set(range(2, COMMITS - 1)) - {places[0], places[0] - 1}
    return {places[0] - 1, *draw.sample(sorted(others), count - 1)}


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
