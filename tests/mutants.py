"""How many of a hundred random faults in the sources the mirrored tests find.

`python -m tests.mutants --seed 1 --count 100` puts one fault at a time into a source file of this
checkout (an operator, a comparison, a constant, a returned value), runs the test files that mirror
the module or import it, and puts the file back. Run it in a git worktree of its own.
"""

from __future__ import annotations

import argparse
import ast
import random
import subprocess
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
PACKAGES = {"equipoise": "equipoise", "matching": "equipoise_matching"}
IN_NAMESPACE = str(ROOT / "scripts/python_in_namespace.sh")
"""Python without the measurement lock and the ports of other tests; needs root."""
TIMEOUT_S = 300
OTHER_OPERATORS: dict[type[ast.AST], tuple[str, str]] = {
    ast.Lt: ("<", "<="),
    ast.LtE: ("<=", "<"),
    ast.Gt: (">", ">="),
    ast.GtE: (">=", ">"),
    ast.Eq: ("==", "!="),
    ast.NotEq: ("!=", "=="),
    ast.Is: ("is", "is not"),
    ast.IsNot: ("is not", "is"),
    ast.In: ("in", "not in"),
    ast.NotIn: ("not in", "in"),
    ast.Add: ("+", "-"),
    ast.Sub: ("-", "+"),
    ast.Mult: ("*", "/"),
    ast.Div: ("/", "*"),
    ast.And: ("and", "or"),
    ast.Or: ("or", "and"),
}


@dataclass(frozen=True)
class Mutant:
    """A source file with one fault."""

    path: Path
    line: int
    before: str
    after: str
    text: str
    """The whole file with the fault."""


def mutants_of(path: Path) -> Iterator[Mutant]:
    """Yield every mutant of a file."""
    text = path.read_text(encoding="utf-8")
    starts = [0]
    for line in text.encode().splitlines(keepends=True):
        starts.append(starts[-1] + len(line))

    def mutant(first: ast.expr, last: ast.expr, before: str, after: str) -> Iterator[Mutant]:
        """Replace `before` once between the start of one node and the end of another."""
        assert first.end_lineno is not None and last.end_lineno is not None
        begin = starts[first.lineno - 1] + first.col_offset
        end = starts[last.end_lineno - 1] + (last.end_col_offset or 0)
        whole = text.encode()
        part = whole[begin:end].decode()
        if part.count(before) == 1:
            changed = whole[:begin] + part.replace(before, after).encode() + whole[end:]
            yield Mutant(path, first.lineno, before.strip(), after.strip(), changed.decode())

    for node in executed_nodes(ast.parse(text)):
        match node:
            case ast.Compare(left, [operator], [right]):
                before, after = OTHER_OPERATORS[type(operator)]
                yield from mutant(left, right, f" {before} ", f" {after} ")
            case ast.BinOp(left, operator, right) if type(operator) in OTHER_OPERATORS:
                before, after = OTHER_OPERATORS[type(operator)]
                yield from mutant(left, right, f" {before} ", f" {after} ")
            case ast.BoolOp(operator, [left, *_, right]):
                before, after = OTHER_OPERATORS[type(operator)]
                yield from mutant(left, right, f" {before} ", f" {after} ")
            case ast.UnaryOp(ast.Not(), operand):
                yield from mutant(node, operand, "not ", "")
            case ast.Constant(bool() as value):
                yield from mutant(node, node, str(value), str(not value))
            case ast.Constant(int() | float() as value):
                written = ast.get_source_segment(text, node)
                assert written is not None
                yield from mutant(node, node, written, f"{value + 1!r}")
            case ast.Return(ast.expr() as value) if not isinstance(value, ast.Constant):
                written = ast.get_source_segment(text, value)
                assert written is not None
                yield from mutant(value, value, written, "None")


def executed_nodes(tree: ast.AST) -> Iterator[ast.AST]:
    """Yield the nodes of a module except those of annotations."""
    for name, value in ast.iter_fields(tree):
        if name in {"annotation", "returns", "type_params"}:
            continue
        for child in value if isinstance(value, list) else [value]:
            if isinstance(child, ast.AST):
                yield child
                yield from executed_nodes(child)


def tests_of(path: Path) -> list[str]:
    """Return the test files that mirror a module or import it; else those of its folder."""
    package = next(name for name in PACKAGES if ROOT / "packages" / name in path.parents)
    source = ROOT / "packages" / package / "src"
    module = path.relative_to(source).with_suffix("")
    dotted = ".".join(module.parts)
    tests = ROOT / "packages" / package / "tests"
    folder = tests.joinpath(*module.parts[1:-1])
    found = [
        file
        for file in sorted(folder.rglob("test_*.py"))
        if file.stem.startswith(f"test_{module.name}") or dotted in file.read_text("utf-8")
    ]
    return [str(file) for file in found or sorted(folder.glob("test_*.py"))]


def is_killed(mutant: Mutant, tests: Sequence[str]) -> bool:
    """Return whether a test fails, or does not end, with the fault."""
    unchanged = mutant.path.read_bytes()
    mutant.path.write_text(mutant.text, encoding="utf-8")
    command = [IN_NAMESPACE, "-m", "pytest", "-x", "-q", "-p", "no:cacheprovider", *tests]
    try:
        done = subprocess.run(
            command, cwd=ROOT, capture_output=True, check=False, timeout=TIMEOUT_S
        )
    except subprocess.TimeoutExpired:
        return True
    finally:
        mutant.path.write_bytes(unchanged)
    return done.returncode not in {pytest.ExitCode.OK, pytest.ExitCode.NO_TESTS_COLLECTED}


def main(arguments: Sequence[str]) -> None:
    """Draw mutants, try each, and print those that survive and the number of those killed."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--count", type=int, default=100)
    options = parser.parse_args(arguments)
    sources = [
        path
        for package, module in PACKAGES.items()
        for path in sorted((ROOT / "packages" / package / "src" / module).rglob("*.py"))
        if not path.is_symlink()
    ]
    every = [mutant for path in sources for mutant in mutants_of(path)]
    drawn = random.Random(options.seed).sample(every, options.count)
    killed = 0
    for mutant in drawn:
        dead = is_killed(mutant, tests_of(mutant.path))
        killed += dead
        fault = f"{mutant.path.relative_to(ROOT)}:{mutant.line}: {mutant.before} -> {mutant.after}"
        print(f"{'killed' if dead else 'survived'} {fault}", flush=True)
    print(f"{killed} of {len(drawn)} killed, of {len(every):,} possible mutants")


if __name__ == "__main__":
    main(sys.argv[1:])
