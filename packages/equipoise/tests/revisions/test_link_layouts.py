"""Layouts of links: the places of functions follow from a seed and their names."""

from __future__ import annotations

import platform
import shutil
from collections.abc import Sequence
from pathlib import Path

import pytest

from equipoise.revisions.link_layouts import (
    Symbol,
    layout_of,
    read_symbols,
    symbols_of,
    write_symbols,
)
from packages.equipoise.tests.programs import finished

SOURCE = "int one(int x) { return 3 * x; }\nint other(int x) { return x - 1; }\nint zeros[9];\n"
ADDED = "int added(int x) { while (x > 7) x = x * 3 / 7 + x % 5; return x; }\n"
SPAN = 4096
pytestmark = [
    pytest.mark.skipif(
        platform.machine() not in ("x86_64", "aarch64"), reason="no layouts for this machine"
    ),
    pytest.mark.skipif(shutil.which("ld.lld") is None, reason="misses ld.lld (package lld)"),
    pytest.mark.skipif(shutil.which("cc") is None, reason="misses cc (package gcc)"),
]


def linked(folder: Path, source: str, *options: str) -> Path:
    """A shared library of a source, whose functions have sections of their own."""
    (folder / "code.c").write_text(source)
    sections = ("-ffunction-sections", "-fdata-sections")
    finished(["cc", "-O1", "-fPIC", *sections, "-c", "code.c"], cwd=folder, check=True)
    line = ["ld.lld", "-shared", "--gc-sections", "code.o", *options, "-o", "code.so"]
    finished(line, cwd=folder, check=True)
    return folder / "code.so"


def addresses(folder: Path, source: str, seed: int) -> dict[str, int]:
    """The addresses of functions and variables in the layout of a seed."""
    symbols = symbols_of(linked(folder, source))
    layout = layout_of(symbols, seed)
    (folder / "order").write_text(layout.order)
    (folder / "unused.o").write_bytes(layout.unused)
    program = linked(folder, source, "unused.o", "--symbol-ordering-file=order")
    lines = finished(["nm", str(program)], cwd=folder, check=True).stdout.splitlines()
    names = {symbol.name for symbol in symbols}
    fields = [line.split() for line in lines]
    return {field[-1]: int(field[0], 16) for field in fields if field[-1] in names}


def test_the_functions_and_variables_of_a_program_are_listed(tmp_path: Path) -> None:
    symbols = symbols_of(linked(tmp_path, SOURCE))
    assert symbols == [Symbol("one", ".text"), Symbol("other", ".text"), Symbol("zeros", ".bss")]
    write_symbols(symbols, tmp_path / "symbols")
    assert read_symbols(tmp_path / "symbols") == symbols


def test_a_stripped_program_and_another_file_have_no_symbols(tmp_path: Path) -> None:
    assert symbols_of(linked(tmp_path, SOURCE, "--strip-all")) == []
    assert symbols_of(tmp_path / "code.c") == []


def test_a_seed_gives_the_same_layout_again() -> None:
    symbols = [Symbol("one", ".text"), Symbol("zeros", ".bss")]
    assert layout_of(symbols, 5) == layout_of(symbols, 5)
    assert layout_of(symbols, 5) != layout_of(symbols, 6)


def test_seeds_give_a_function_many_places(tmp_path: Path) -> None:
    places = {addresses(tmp_path, SOURCE, seed)["one"] % SPAN for seed in range(1, 17)}
    assert len(places) > 10


def test_a_function_that_is_added_moves_no_other_function(tmp_path: Path) -> None:
    for seed in range(1, 5):
        before = addresses(tmp_path, SOURCE, seed)
        after = addresses(tmp_path, ADDED + SOURCE, seed)
        assert "added" in after
        assert before.keys() == {"one", "other", "zeros"}
        for name, address in before.items():
            assert after[name] % SPAN == address % SPAN


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (
            "_ZN7kernels4fold17h0123456789abcdefE",
            "_ZN7kernels4fold17hfedcba9876543210E",
        ),
        ("_RNvCs1234_7kernels4fold", "_RNvCsabcdEF_7kernels4fold"),
        ("fold.llvm.123", "fold.llvm.456"),
    ],
)
def test_hashes_of_a_build_in_a_name_do_not_matter(one: str, other: str) -> None:
    layouts = [layout_of([Symbol(name, ".text")], 5) for name in (one, other)]
    assert layouts[0].unused == layouts[1].unused


def test_a_large_program_has_smaller_unused_sections() -> None:
    def unused_bytes(count: int) -> int:
        symbols: Sequence[Symbol] = [Symbol(f"f{number}", ".text") for number in range(count)]
        return len(layout_of(symbols, 5).unused)

    assert unused_bytes(1000) < 10 * unused_bytes(100)
    assert unused_bytes(1000) < 500_000
