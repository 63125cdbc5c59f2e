"""The pictures of pages in docs/images, from campaigns that are run here once.

Each campaign is kept in build/screenshots: with its result there, nothing is measured again, and
only the page and its picture are made anew. Needs chromium, and pngquant for small files.
"""

from __future__ import annotations

import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

from tests.report.chromium import DRAWN, chromium  # noqa: E402

IMAGES = ROOT / "docs" / "images"
KEPT = ROOT / "build" / "screenshots"
WIDE, PHONE = (1280, 800), (390, 844)
WORKLOAD = "equipoise-workload malloc --size 35840 --count 2000"
FROM_15K = "2:GLIBC_TUNABLES=glibc.malloc.mmap_threshold=15360:glibc.malloc.top_pad=0"
TWO_MALLOCS = (
    *("compare", WORKLOAD, WORKLOAD, "-n", "glibc", "-n", "glibc_15k", "--env", FROM_15K),
    *("--control", "--metrics", "wall_s,minor_faults"),
)


@dataclass(frozen=True, slots=True)
class Screen:
    """The first screen of the page of one campaign."""

    name: str
    command: tuple[str, ...]
    """What measures."""
    image: str
    size: tuple[int, int] = WIDE


SCREENS = (
    Screen("compare", TWO_MALLOCS, "report-first-screen.png"),
    Screen("compare", TWO_MALLOCS, "report-phone.png", PHONE),
    Screen("why", (*TWO_MALLOCS, "--why"), "report-why.png"),
    Screen("os", ("os", "--quick"), "report-os.png"),
    Screen("sekhon2006", ("run", "sekhon2006", "--quick"), "report-sekhon2006.png"),
)


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
            browser.open(_page(screen), *screen.size, ready=DRAWN)
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
    _equipoise("report", str(result), "-o", str(path))
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
