"""Where benchmarks are defined: only where a tool's name of a benchmark makes this certain."""

from __future__ import annotations

from pathlib import Path

import pytest

from equipoise.model.revisions import SourcePlace
from equipoise.suites import TOOLS

TESTS = """
class TestLong:
    def test_lines(self, benchmark): ...

    async def test_async(self, benchmark): ...

class TestTwice:
    def test_a(self, benchmark): ...

    def test_a(self, benchmark): ...

@pytest.mark.parametrize("n", [1, 2])
def test_parse(benchmark, n): ...

test_made = make_test()
"""
GO = """package text

func BenchmarkParse(b *testing.B) {}
func BenchmarkTwice(b *testing.B) {}
"""


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    """A working tree with tests of Python and of Go in a folder."""
    tree = tmp_path / "tree"
    package = tree / "sub" / "text"
    package.mkdir(parents=True)
    (package / "test_text.py").write_text(TESTS)
    (package / "test_torn.py").write_text("def test_torn(:")
    (tree / "sub" / "go.mod").write_text("module example.org/sub // comment\n\ngo 1.22\n")
    (package / "text_test.go").write_text(GO)
    (package / "other_test.go").write_text("package text_test\n\nfunc BenchmarkTwice(b *B) {}\n")
    outside = tmp_path / "test_outside.py"
    outside.write_text("def test_it(benchmark): ...\n")
    (tree / "sub" / "test_link.py").symlink_to(outside)
    return tree


def place_of(tool: str, tree: Path, name: str) -> SourcePlace | None:
    places = TOOLS[tool].places
    assert places is not None
    return places(tree, tree / "sub", [name]).get(name)


@pytest.mark.parametrize(
    ("name", "line"),
    [
        ("text/test_text.py::test_parse[2-a::b]", 13),
        ("sub/text/test_text.py::test_parse", 13),
        ("text/test_text.py::TestLong::test_lines", 3),
        ("text/test_text.py::TestLong::test_async[x]", 5),
        ("text/test_text.py::TestTwice::test_a", None),
        ("text/test_text.py::test_made", None),
        ("text/test_text.py::TestLong", None),
        ("text/test_text.py::test_parse::test_lines", None),
        (f"{'n' * 10_000}.py::test_parse", None),
        ("nul\0.py::test_parse", None),
        ("text/test_text.py", None),
        ("text/test_torn.py::test_torn", None),
        ("missing.py::test_parse", None),
        ("test_link.py::test_it", None),
        ("../../test_outside.py::test_it", None),
        ("", None),
    ],
)
def test_a_test_of_pytest_is_found_by_its_file_and_its_function(
    name: str, line: int | None, tree: Path
) -> None:
    place = None if line is None else SourcePlace("sub/text/test_text.py", line)
    assert place_of("pytest", tree, name) == place


@pytest.mark.parametrize(
    ("name", "line"),
    [
        ("example.org/sub/text.BenchmarkParse-8", 3),
        ("example.org/sub/text.BenchmarkParse/size=10/x.BenchmarkY-8", 3),
        ("example.org/sub/text.BenchmarkTwice", None),
        ("example.org/sub/text.BenchmarkParser", None),
        ("example.org/subtext.BenchmarkParse", None),
        ("example.org/sub/missing.BenchmarkParse", None),
        (f"example.org/sub/{'n' * 10_000}.BenchmarkParse", None),
        ("example.org/sub/../../..//.BenchmarkParse", None),
        ("BenchmarkParse", None),
    ],
)
def test_a_benchmark_of_go_is_found_by_its_package_and_its_function(
    name: str, line: int | None, tree: Path
) -> None:
    place = None if line is None else SourcePlace("sub/text/text_test.go", line)
    assert place_of("go", tree, name) == place
    (tree / "sub" / "go.mod").unlink()
    assert place_of("go", tree, name) is None
