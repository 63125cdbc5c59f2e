"""What tests read of published crates is fetched before they lose the network."""

from __future__ import annotations

import shutil
import sys
from pathlib import Path

import pytest

from packages.equipoise.tests.programs import finished
from tests import crates

ROOT = Path(crates.__file__).resolve().parent.parent


@pytest.fixture
def nothing_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Neither our files nor those of cargo are kept, and no registry answers."""
    monkeypatch.setattr(crates, "KEPT", tmp_path / "kept")
    monkeypatch.setenv("CARGO_HOME", str(tmp_path / "cargo"))
    monkeypatch.setenv("CARGO_NET_OFFLINE", "true")
    return tmp_path / "kept"


def test_without_a_registry_the_reason_names_the_file_and_nothing_is_kept(
    nothing_kept: Path,
) -> None:
    with pytest.raises(
        crates.NotFetchedError, match=r"README\.md of hyperfine 2\.0\.0, which cargo"
    ):
        crates.file_of_crate(*crates.HYPERFINE)
    assert [*nothing_kept.rglob("*.md")] == []


def test_without_cargo_the_reason_says_so(
    nothing_kept: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("PATH", str(nothing_kept))
    assert crates.main() == 0
    assert capsys.readouterr().out == (
        "tests will be skipped: "
        "misses README.md of hyperfine 2.0.0: there is no cargo to fetch it\n"
    )


def test_a_kept_file_needs_no_cargo(nothing_kept: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = nothing_kept / "hyperfine-2.0.0"
    folder.mkdir(parents=True)
    (folder / "README.md").write_text("kept")
    monkeypatch.setenv("PATH", str(nothing_kept))
    assert crates.file_of_crate(*crates.HYPERFINE).read_text() == "kept"


def test_the_whole_test_command_fetches_before_the_network_is_gone(tmp_path: Path) -> None:
    # The order is what counts: `make test` starts the namespaces after it.
    shutil.copytree(ROOT / "scripts", tmp_path / "scripts")
    shutil.copy(ROOT / "pyproject.toml", tmp_path)
    (tmp_path / "tests").mkdir()
    shutil.copy(crates.__file__, tmp_path / "tests")
    told = "import sys; sys.path.insert(0, 'scripts'); import run_tests as it; "
    told += "it.python = lambda words, **_: print('tests begin'); it.running()"
    done = finished(
        [sys.executable, "-c", told], cwd=tmp_path, env={"PATH": str(tmp_path)}, check=True
    )
    first, last = done.stdout.splitlines()
    assert first.startswith("tests will be skipped: misses README.md of hyperfine")
    assert last == "tests begin"
