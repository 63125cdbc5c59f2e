"""The example of docs/examples/verify: one patch is certified and replicates, one is wrong."""

from __future__ import annotations

import os
import shutil
import sys
from pathlib import Path

import pytest

from packages.equipoise.tests.programs import finished

EXAMPLE = Path(__file__).parents[5] / "docs/examples/verify/try.sh"
PROGRAMS = ("git", "make", "cc", "awk", "patch")


@pytest.mark.skipif(
    any(shutil.which(name) is None for name in PROGRAMS), reason=f"misses one of {PROGRAMS}"
)
def test_the_example_certifies_the_right_patch_and_refuses_the_wrong_one(tmp_path: Path) -> None:
    folders = (str(Path(sys.executable).parent), os.environ["PATH"])
    environment = {
        **os.environ,
        "PATH": os.pathsep.join(folders),
        "TMPDIR": str(tmp_path),
        "EQUIPOISE_BUILDS": str(tmp_path / "builds"),
        "EQUIPOISE_ALLOW_CONCURRENT": "1",
    }
    done = finished(["sh", str(EXAMPLE)], cwd=tmp_path, env=environment)
    assert done.returncode == 0, done
    assert done.stdout.startswith("Certified: it is faster, and every output was equal.")
    assert "The certificate replicates" in done.stdout
    assert "Wrong output in" in done.stdout
    assert [path.name for path in tmp_path.iterdir() if path.name != "builds"] == []
