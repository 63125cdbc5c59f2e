"""Small git repositories that several tests make."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from packages.equipoise.tests.programs import finished

SETTINGS = ("-c", "user.name=Ada", "-c", "user.email=ada@example.com", "-c", "commit.gpgsign=false")


@dataclass(frozen=True)
class MadeRepository:
    """One repository with a working tree."""

    path: Path

    def git(self, *words: str) -> str:
        """Output of git."""
        done = finished(["git", *SETTINGS, *words], cwd=self.path, check=True)
        return done.stdout

    def write(self, name: str, text: str, *, executable: bool = False) -> None:
        """Write a file of the working tree."""
        path = self.path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
        if executable:
            path.chmod(0o755)

    def commit(self, message: str = "a change") -> str:
        """Commit everything; give the commit's name."""
        self.git("add", "--all")
        self.git("commit", "--quiet", "--allow-empty", "-m", message)
        return self.git("rev-parse", "HEAD").strip()


def repository(path: Path) -> MadeRepository:
    """A new repository without a commit."""
    path.mkdir(parents=True)
    made = MadeRepository(path)
    made.git("init", "--quiet", "--initial-branch=main", ".")
    return made


def everything_in(folder: Path) -> dict[str, bytes]:
    """Every file below a folder, git's own among them, with what is in it."""
    return {
        str(file.relative_to(folder)): file.read_bytes()
        for file in sorted(folder.rglob("*"))
        if file.is_file() and not file.is_symlink()
    }
