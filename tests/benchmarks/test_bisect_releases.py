"""The benchmark of a real crate: its releases become commits. No registry is asked here."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from benchmarks.bisect import releases


def fetched(release: str, vendored: Path) -> Path:
    """A release as cargo would fetch it: a file of its own, and one that goes again."""
    source = vendored / release
    (source / "src").mkdir(parents=True)
    (source / "src" / "lib.rs").write_text(f"// {release}\n")
    (source / f"only in {release}").touch()
    return source


def test_each_release_is_a_commit_with_the_same_program(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(releases, "source_of", fetched)
    repository = tmp_path / "crate"
    releases.make_repository(repository, tmp_path / "vendored")

    def git(*words: str) -> list[str]:
        done = subprocess.run(["git", *words], cwd=repository, capture_output=True, text=True)
        return done.stdout.splitlines()

    wanted = [f"{releases.CRATE} {release}" for release in releases.RELEASES]
    assert git("log", "--reverse", "--format=%s") == wanted
    assert sorted(git("tag")) == sorted(f"v{release}" for release in releases.RELEASES)
    for release in releases.RELEASES:
        names = git("ls-tree", "-r", "--name-only", f"v{release}")
        own = f"only in {release}"
        assert sorted(names) == [".gitignore", "bench.rs", "build.sh", own, "src/lib.rs"]
        assert git("show", f"v{release}:src/lib.rs") == [f"// {release}"]
    assert git("status", "--short") == []
