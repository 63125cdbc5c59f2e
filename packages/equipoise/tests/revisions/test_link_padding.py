"""Objects with unused sections, for lld."""

from __future__ import annotations

import platform
import shutil
from pathlib import Path

import pytest

from equipoise.revisions.link_padding import padding_object
from packages.equipoise.tests.programs import finished

SOURCE = "int one(int x) { return 3 * x; }\nint other(int x) { return x - 1; }\n"
pytestmark = pytest.mark.skipif(
    platform.machine() not in ("x86_64", "aarch64"), reason="no padding for this machine"
)


def test_a_seed_gives_the_same_object_again() -> None:
    assert padding_object(5) == padding_object(5)
    assert padding_object(5) != padding_object(6)


def test_an_unknown_machine_has_no_padding(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(platform, "machine", lambda: "abacus")
    assert padding_object(5) is None


@pytest.mark.skipif(shutil.which("ld.lld") is None, reason="misses ld.lld (package lld)")
@pytest.mark.skipif(shutil.which("nm") is None, reason="misses nm (package binutils)")
def test_two_functions_get_more_places_than_their_two_orders(tmp_path: Path) -> None:
    (tmp_path / "code.c").write_text(SOURCE)
    compile_line = ["cc", "-O1", "-fPIC", "-ffunction-sections", "-c", "code.c"]
    finished(compile_line, cwd=tmp_path, check=True)
    places = set()
    for seed in range(1, 25):
        content = padding_object(seed)
        assert content is not None
        (tmp_path / "padding.o").write_bytes(content)
        shuffle = f"--shuffle-sections=.text*={seed}"
        line = ["ld.lld", "-shared", "--gc-sections", shuffle, "code.o", "padding.o"]
        finished([*line, "-o", "code.so"], cwd=tmp_path, check=True)
        symbols = finished(["nm", "code.so"], cwd=tmp_path, check=True).stdout.split("\n")
        addresses = {
            name: int(address, 16)
            for address, kind, name in (line.split() for line in symbols if " T " in line)
            if kind == "T"
        }
        places.add(addresses["one"] - addresses["other"])
    assert len(places) > 10
