"""``python -m benchmarks.bisect.releases FOLDER``: a real crate, its releases as commits.

The releases of unicode-width, as crates.io has them, become the commits of a repository, each with
the same small program, which asks for the width of a text in four scripts. `equipoise bisect --why`
looks for the release that made it slower, and `equipoise compare` confirms it afresh: both releases
are built anew in other folders, with other coins. It takes about four minutes of two cores.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

from equipoise.measure.trials import own_environment

CRATE = "unicode-width"
RELEASES = ("0.1.10", "0.1.11", "0.1.12", "0.1.13", "0.1.14", "0.2.0", "0.2.1", "0.2.2")
"""The first is the good one, the last the bad one."""
BENCH = """use unicode_width::UnicodeWidthStr;

const TEXT: &str = "The quick brown fox jumps over the lazy dog. \\
    Zwölf Boxkämpfer jagen Viktor quer über den großen Sylter Deich. \\
    Съешь же ещё этих мягких французских булок. \\
    いろはにほへと ちりぬるを 我能吞下玻璃而不傷身體。";

fn main() {
    let times: usize = std::env::args().nth(1).map_or(20_000, |one| one.parse().unwrap());
    let mut width = 0;
    for _ in 0..times {
        width += std::hint::black_box(TEXT).width();
    }
    println!("{width}");
}
"""
BUILD = """edition=$(sed -n 's/^edition = "\\(.*\\)"/\\1/p' Cargo.toml)
rustc -O -g --edition "${edition:-2015}" --crate-type rlib --crate-name unicode_width \\
    --cap-lints allow --cfg 'feature="cjk"' src/lib.rs &&
rustc -O -g --edition 2021 --extern unicode_width=libunicode_width.rlib bench.rs
"""
COMMAND = ("./bench", "100000")
BUDGET_S = 100


def main() -> int:
    """0 if a release was named and confirmed, 1 if not."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.bisect.releases")
    parser.add_argument("folder", type=Path, help="a new folder for the repository and the builds")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--budget", type=int, default=BUDGET_S, help="seconds of each campaign")
    options = parser.parse_args()
    folder: Path = options.folder.resolve()
    folder.mkdir(parents=True)
    repository = folder / CRATE
    make_repository(repository, folder / "vendored")
    limits = ("--budget", str(options.budget), "--allow-concurrent", "--no-color")
    good, bad = f"v{RELEASES[0]}", f"v{RELEASES[-1]}"
    found = equipoise(
        repository,
        *("bisect", "--good", good, "--bad", bad, "--build", "sh build.sh", "--why"),
        *(*limits, "--seed", str(options.seed), "--report", str(folder / "bisect.html")),
        *("--json", str(folder / "bisect.json"), "--", *COMMAND),
    )
    bisect = json.loads((folder / "bisect.json").read_text())["bisect"]
    if found or not bisect["culprits"]:
        return 1
    agree = [confirmed(folder, repository, one, limits) for one in bisect["culprits"]]
    return 0 if all(agree) else 1


def make_repository(repository: Path, vendored: Path) -> None:
    """Make a repository with one commit and one tag for each release."""
    repository.mkdir()
    git(repository, "init", "--quiet", "--initial-branch", "main")
    git(repository, "config", "user.name", "crates.io")
    git(repository, "config", "user.email", "releases@localhost")
    for release in RELEASES:
        for old in (one for one in repository.iterdir() if one.name != ".git"):
            shutil.rmtree(old) if old.is_dir() else old.unlink()
        shutil.copytree(source_of(release, vendored), repository, dirs_exist_ok=True)
        (repository / "bench.rs").write_text(BENCH)
        (repository / "build.sh").write_text(BUILD)
        (repository / ".gitignore").write_text("bench\n*.rlib\n")
        git(repository, "add", "--all", "--force", ".")
        git(repository, "commit", "--quiet", "--message", f"{CRATE} {release}")
        git(repository, "tag", f"v{release}")


def source_of(release: str, vendored: Path) -> Path:
    """Return the folder of a release's source, fetched by cargo."""
    package = vendored / release
    (package / "src").mkdir(parents=True)
    (package / "src" / "lib.rs").touch()
    (package / "Cargo.toml").write_text(
        '[package]\nname = "fetches"\nversion = "0.1.0"\nedition = "2021"\n'
        f'[dependencies]\n{CRATE} = "={release}"\n'
    )
    words = ("cargo", "vendor", "--quiet", "--versioned-dirs", "sources")
    subprocess.run(words, cwd=package, check=True, stdout=subprocess.DEVNULL)
    source = package / "sources" / f"{CRATE}-{release}"
    # Checksums of the vendored files are no part of the release.
    (source / ".cargo-checksum.json").unlink()
    return source


def confirmed(
    folder: Path, repository: Path, culprit: dict[str, object], limits: Sequence[str]
) -> bool:
    """Build a culprit and its parent anew and compare them; return whether both answers agree."""
    subject = str(culprit["subject"]).removeprefix(f"{CRATE} ")
    folders = []
    for name in ("parent", "commit"):
        clone = folder / f"{name}-of-{subject}"
        git(folder, "clone", "--quiet", str(repository), str(clone))
        git(clone, "checkout", "--quiet", str(culprit[name]))
        subprocess.run(("sh", "build.sh"), cwd=clone, check=True)
        folders.append(clone)
    file = folder / f"compare-{subject}.json"
    programs = [f"{clone / 'bench'} {COMMAND[1]}" for clone in folders]
    names = ("-n", "the release before", "-n", subject)
    blocks = ("--min-blocks", "40")
    if equipoise(folder, "compare", *programs, *names, *limits, *blocks, "--json", str(file)):
        return False
    (comparison,) = (
        one for one in json.loads(file.read_text())["comparisons"] if one["metric"] == "wall_s"
    )
    ratio = culprit["ratio"]
    assert isinstance(ratio, float), "a step has a size"
    return bool(comparison["verdict"] == ("slower" if ratio > 1.0 else "faster"))


def equipoise(folder: Path, *words: str) -> int:
    """Run Equipoise in a folder, with what it prints; return its exit status."""
    line = (sys.executable, "-m", "equipoise.cli", *words)
    return subprocess.run(line, cwd=folder, env=environment(folder)).returncode


def environment(folder: Path) -> dict[str, str]:
    """Return an environment whose builds and ledgers stay in the benchmark's folder."""
    kept = folder if (folder / "vendored").exists() else folder.parent
    return {**own_environment(), "EQUIPOISE_BUILDS": str(kept / "builds")}


def git(folder: Path, *words: str) -> None:
    """Run git without the user's own configuration."""
    alone = {**os.environ, "GIT_CONFIG_GLOBAL": os.devnull, "GIT_CONFIG_NOSYSTEM": "1"}
    subprocess.run(("git", *words), cwd=folder, env=alone, check=True)


if __name__ == "__main__":
    sys.exit(main())
