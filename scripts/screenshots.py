"""The pictures of pages in docs/images, from campaigns that are run here once.

Each campaign is kept in build/screenshots: with its result there, nothing is measured again, and
only the page and its picture are made anew. Pages of matching are computed each time, from their
seed. Needs chromium, and pngquant for small files.
"""

from __future__ import annotations

import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import pandas

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

from equipoise_matching.matching.datasets import cps_controls, lalonde  # noqa: E402
from packages.equipoise.tests.report.chromium import DRAWN, chromium  # noqa: E402

IMAGES = ROOT / "docs" / "images"
KEPT = ROOT / "build" / "screenshots"
PROGRAMS = ROOT / "packages" / "studies" / "src" / "equipoise_studies" / "_bin"
WIDE, PHONE = (1280, 800), (390, 844)
WORKLOAD = "equipoise-workload malloc --size 35840 --count 2000"
FROM_15K = "2:GLIBC_TUNABLES=glibc.malloc.mmap_threshold=15360:glibc.malloc.top_pad=0"
TWO_MALLOCS = (
    *("compare", WORKLOAD, WORKLOAD, "-n", "glibc", "-n", "glibc_15k", "--env", FROM_15K),
    *("--control", "--metrics", "wall_s,minor_faults"),
)
PEOPLE = "age,educ,black,hisp,married,nodegr,re74,re75,u74,u75"
# As docs/explanation/matching-logs.md and docs/reference/genetic-matching.md have them.
OBSERVE = (
    *("observe", "cps.csv", "--treatment", "treat=1:0", "--outcome", "re78", "--difference"),
    *("--cluster", "none", "--covariates", PEOPLE, "--seed", "1", "--quiet"),
)
GENMATCH = (
    *("genmatch", "cps.csv", "--treatment", "treat", "--outcome", "re78", "--population", "200"),
    *("--seed", "1", "--covariates", PEOPLE, "--quiet"),
)


@dataclass(frozen=True, slots=True)
class Screen:
    """The first screen of the page of one campaign, or of one match."""

    name: str
    command: tuple[str, ...]
    """What measures, or matches."""
    image: str
    size: tuple[int, int] = WIDE


SCREENS = (
    Screen("compare", TWO_MALLOCS, "report-first-screen.png"),
    Screen("compare", TWO_MALLOCS, "report-phone.png", PHONE),
    Screen("why", (*TWO_MALLOCS, "--why"), "report-why.png"),
    Screen("os", ("os", "--quick"), "report-os.png"),
    Screen("sekhon2006", ("run", "sekhon2006", "--quick"), "report-sekhon2006.png"),
    Screen("observe", OBSERVE, "observe-first-screen.png"),
    Screen("genmatch", GENMATCH, "genmatch-first-screen.png"),
)
MATCHING = ("observe", "genmatch")


def main() -> int:
    """Make those that are named, or all; return the exit status."""
    wanted = set(sys.argv[1:])
    unknown = wanted - {one.name for one in SCREENS}
    if unknown:
        known = ", ".join(dict.fromkeys(one.name for one in SCREENS))
        print(f"no such page: {', '.join(sorted(unknown))}\n  hint: {known}", file=sys.stderr)
        return 2
    KEPT.mkdir(parents=True, exist_ok=True)
    with chromium() as browser:
        for screen in SCREENS:
            if wanted and screen.name not in wanted:
                continue
            make = _page_of_match if screen.name in MATCHING else _page
            browser.open(make(screen), *screen.size, ready=DRAWN)
            image = IMAGES / screen.image
            browser.screenshot(image)
            _made_small(image)
            print(f"{image.relative_to(ROOT)}: {image.stat().st_size // 1000} kB")
    return 0


def _page(screen: Screen) -> Path:
    """The page of a campaign, which is run if its result is not kept."""
    result, path = KEPT / f"{screen.name}.json", KEPT / f"{screen.name}.html"
    if not result.exists():
        ledger = KEPT / f"{screen.name}.db"
        _equipoise(*screen.command, "--ledger", str(ledger), "--json", str(result))
        # The programs as the command named them, not where this checkout has them.
        text = result.read_text(encoding="utf-8")
        result.write_text(text.replace(f"{PROGRAMS}/", ""), encoding="utf-8")
    _equipoise("report", str(result), "-o", str(path))
    return path


def _page_of_match(screen: Screen) -> Path:
    """The page of a command that matches LaLonde's people with those of a survey."""
    people = lalonde()
    trained = people[people["treat"] == 1]
    pandas.concat([trained, cps_controls()]).to_csv(KEPT / "cps.csv", index=False)
    path = KEPT / f"{screen.name}.html"
    _equipoise(*screen.command, "--report", str(path))
    return path


def _equipoise(*words: str) -> None:
    subprocess.run([sys.executable, "-m", "equipoise.cli", *words], check=True, cwd=KEPT)


def _made_small(image: Path) -> None:
    """256 colours are enough for a page."""
    if shutil.which("pngquant") is not None:
        subprocess.run(
            ["pngquant", "--force", "--strip", "--output", str(image), str(image)], check=True
        )


if __name__ == "__main__":
    sys.exit(main())
