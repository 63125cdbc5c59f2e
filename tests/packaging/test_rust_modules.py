"""The modules of each Rust crate import each other in one direction."""

from __future__ import annotations

import re
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
MANIFESTS = sorted(
    path
    for folder in (ROOT / "crates", *ROOT.glob("packages/*/crates"))
    for path in folder.rglob("Cargo.toml")
    if "target" not in path.relative_to(folder).parts
)

Module = tuple[str, ...]


@pytest.mark.parametrize("manifest", MANIFESTS, ids=lambda path: path.parent.name)
def test_no_modules_of_a_crate_import_each_other_in_a_circle(manifest: Path) -> None:
    graph = imports(manifest.parent / "src")
    assert graph
    try:
        TopologicalSorter(graph).prepare()
    except CycleError as error:
        circle = " -> ".join("::".join(("crate", *module)) for module in reversed(error.args[1]))
        pytest.fail(f"{manifest.parent.relative_to(ROOT)}: {circle}")


def test_a_circle_is_found(tmp_path: Path) -> None:
    (tmp_path / "lib.rs").write_text("mod a;\nmod b;\nuse a::f;\n")
    (tmp_path / "a.rs").write_text("use std::fs;\nuse crate::{b::{self, g}, free};\n")
    (tmp_path / "b.rs").write_text("// crate::a\nfn g() { super::a::f() }\n")
    graph = imports(tmp_path)
    assert graph == {(): {("a",)}, ("a",): {("b",), ()}, ("b",): {("a",)}}


def test_an_item_that_the_root_exports_belongs_to_its_own_module(tmp_path: Path) -> None:
    (tmp_path / "lib.rs").write_text("mod a;\nmod b;\npub use a::F;\nuse other::{c};\n")
    (tmp_path / "a.rs").write_text("pub struct F;\n")
    (tmp_path / "b.rs").write_text("use crate::F;\nuse crate::c;\n")
    assert imports(tmp_path) == {(): {("a",)}, ("a",): set(), ("b",): {("a",)}}


def test_what_tests_import_is_no_matter(tmp_path: Path) -> None:
    (tmp_path / "lib.rs").write_text("mod a;\nuse crate::a::f;\n")
    (tmp_path / "a.rs").write_text("fn f() {}\n#[cfg(test)]\nmod tests {\n    use crate::g;\n}\n")
    assert imports(tmp_path) == {(): {("a",)}, ("a",): set()}


def imports(source: Path) -> dict[Module, set[Module]]:
    """Return, for each module of a crate, the modules whose items it names.

    An item that a module imports, and that others name through it, belongs to its own module.
    """
    files = {module_of(path.relative_to(source)): path for path in source.rglob("*.rs")}
    codes = {module: code_of(path) for module, path in files.items()}
    borrowed: dict[Module, Module | None] = {}
    for module, code in codes.items():
        for statement in re.findall(r"(?<!\w)use ([^;]+);", code):
            paths = named_paths(module, statement, set(codes))
            borrowed |= {(*module, path[-1]): path for path in paths if path[:-1] != module}
            if not paths:  # of another crate
                borrowed |= {(*module, word): None for word in re.findall(r"\w+", statement)}

    def owner(path: Module) -> Module | None:
        for end in range(1, len(path) + 1):
            if path[:end] in borrowed and path[:end] not in codes:
                source = borrowed[path[:end]]
                return None if source is None else owner((*source, *path[end:]))
        return next(path[:end] for end in range(len(path), -1, -1) if path[:end] in codes)

    return {
        module: {
            named
            for path in named_paths(module, code, set(codes))
            if (named := owner(path)) is not None and named != module
        }
        for module, code in codes.items()
        if not "".join(module[-1:]).endswith("tests")
    }


def module_of(path: Path) -> Module:
    """Return the module of a file: ``a/b.rs`` and ``a/b/mod.rs`` are ``a::b``."""
    parts = path.with_suffix("").parts
    return parts[:-1] if parts[-1] in {"lib", "main", "mod"} else parts


def code_of(path: Path) -> str:
    """Return the code of a file, without comments and unit tests."""
    code = re.sub(r"//.*", "", path.read_text().split("#[cfg(test)]\nmod tests")[0])
    # In a module within the file `super` is the module of the file.
    return re.sub(
        r"^(?:pub )?mod \w+ \{.*?^\}",
        lambda inner: inner[0].replace("super::", "self::"),
        code,
        flags=re.MULTILINE | re.DOTALL,
    )


def named_paths(module: Module, code: str, modules: set[Module]) -> set[Module]:
    """Return the paths, from the root of the crate, that some code of a module names."""
    children = [child[-1] for child in modules if child[:-1] == module and child]
    roots = "|".join(["crate", "super", "self", *children])
    paths = set()
    for match in re.finditer(rf"(?<![\w:$])({roots})((?:::\w+)*)(?:::([{{*]))?", code):
        root, rest, group = match.groups()
        if not rest and not group:
            continue  # a visibility, a value, or a word that is the name of a child, too
        base = {"crate": (), "super": module[:-1], "self": module}.get(root, (*module, root))
        start = (*base, *rest.split("::")[1:])
        leaves = group_paths(code, match.end() - 1) if group == "{" else [()]
        paths |= {(*start, *leaf) for leaf in leaves if start or leaf}
    return paths


def group_paths(code: str, start: int) -> list[Module]:
    """Return the paths in the braces of an import, which may be nested."""
    paths: list[Module] = []
    prefixes: list[Module] = []
    current: Module = ()
    for token in re.findall(r"\w+|[{},]", code[start:]):
        if token == "{":
            prefixes.append(current)
        elif token in {",", "}"}:
            paths.append(current)
            if token == "}":
                prefixes.pop()
                if not prefixes:
                    return paths
            current = prefixes[-1]
        elif token != "self":
            current = (*current, token)
    return paths
