"""Files of published crates that tests read: fetched once, and kept in target/crates.

    python -m tests.crates    # what `make test` runs before tests lose the network

Tests of campaigns run in network namespaces of their own, where cargo reaches no registry.
"""

from __future__ import annotations

import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

KEPT = Path(__file__).resolve().parent.parent / "target" / "crates"
HYPERFINE = "hyperfine", "2.0.0", "README.md"
"""Its newest release when this was written."""
NEEDED = (HYPERFINE,)
ANSWER_S = 120.0


class NotFetchedError(Exception):
    """A file that is not kept and cannot be fetched; the text says why."""


def file_of_crate(crate: str, version: str, name: str) -> Path:
    """Return the path of a file of a crate, fetched by cargo where it is not kept.

    Raise `NotFetchedError`: cargo is missing, or reaches no registry.
    """
    kept = KEPT / f"{crate}-{version}" / name
    if not kept.exists():
        what = f"{name} of {crate} {version}"
        if shutil.which("cargo") is None:
            raise NotFetchedError(f"misses {what}: there is no cargo to fetch it")
        kept.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=kept.parent) as folder:
            try:
                fetched = _vendored(Path(folder), crate, version) / name
            except (subprocess.SubprocessError, OSError) as error:
                last = (getattr(error, "stderr", None) or str(error)).strip().splitlines()[-1:]
                raise NotFetchedError(
                    f"misses {what}, which cargo could not fetch: {''.join(last).strip()}"
                ) from error
            # Whole or not at all: two tests may fetch it at once.
            fetched.replace(kept)
    return kept


def _vendored(folder: Path, crate: str, version: str) -> Path:
    """Return the folder of a crate that cargo unpacks."""
    (folder / "src").mkdir()
    (folder / "src/lib.rs").touch()
    (folder / "Cargo.toml").write_text(
        f'[package]\nname = "reader"\nversion = "0.0.0"\nedition = "2021"\n'
        f'[workspace]\n[dependencies]\n{crate} = "={version}"\n'
    )
    subprocess.run(
        ["cargo", "vendor", "--quiet", "vendored"],
        cwd=folder,
        capture_output=True,
        text=True,
        timeout=ANSWER_S,
        check=True,
    )
    return folder / "vendored" / crate


def main() -> int:
    """Fetch what tests need, or print why not: the tests that need it are skipped then."""
    for needed in NEEDED:
        try:
            print(f"kept for tests: {file_of_crate(*needed)}")
        except NotFetchedError as reason:
            print(f"tests will be skipped: {reason}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
