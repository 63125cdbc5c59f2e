"""A wheel says whose code is in its programs, and `make wheel` compiles once."""

from __future__ import annotations

import importlib.util
from pathlib import Path

from packages.equipoise.tests.programs import finished

ROOT = Path(__file__).resolve().parent.parent.parent


def notices_of(manifests: list[Path]) -> str:
    specification = importlib.util.spec_from_file_location("hatch_build", ROOT / "hatch_build.py")
    assert specification is not None and specification.loader is not None
    module = importlib.util.module_from_spec(specification)
    specification.loader.exec_module(module)
    return str(module.third_party_notices(manifests))


def crate(folder: Path, name: str, licence: str, **texts: str) -> Path:
    folder = folder / name
    folder.mkdir()
    package = f'name = "{name}"\nversion = "1.2.3"\nlicense = "{licence}"'
    (folder / "Cargo.toml").write_text(f"[package]\n{package}\n")
    for file, text in texts.items():
        (folder / file).write_text(text)
    return folder / "Cargo.toml"


def test_each_crate_has_its_licence_its_source_and_each_text_stands_once(tmp_path: Path) -> None:
    flames = crate(tmp_path, "flames", "CDDL-1.0", LICENSE="the CDDL", README="read me")
    others = [crate(tmp_path, name, "MIT", COPYING="the MIT licence") for name in ("a", "b")]
    notices = notices_of([flames, *others, flames])
    assert notices.count("flames 1.2.3  CDDL-1.0  https://crates.io/crates/flames/1.2.3\n") == 1
    assert "flames 1.2.3, LICENSE\n\nthe CDDL" in notices
    assert "a 1.2.3, COPYING; b 1.2.3, COPYING\n\nthe MIT licence" in notices
    assert notices.count("the MIT licence") == 1
    assert "read me" not in notices


def test_the_recipe_of_the_wheel_builds_once(tmp_path: Path) -> None:
    """Where nothing is built yet, `make wheel` would run what these lines say."""
    planned = finished(
        ["make", "--dry-run", f"VENV={tmp_path / 'venv'}", "wheel"], cwd=ROOT, check=True
    ).stdout
    assert planned.count("hatchling build") == 1
    assert "--editable" not in planned
    assert "cargo build" not in planned
