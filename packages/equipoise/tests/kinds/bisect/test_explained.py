"""The places of a diff that are shown for the functions that got slower."""

from __future__ import annotations

import pytest

from equipoise.kinds.bisect.explained import MAX_LINE_LETTERS, MAX_LINES, _hunks_naming, _identifier

PATCH = """diff --git a/a.c b/a.c
index 1..2 100644
--- a/a.c
+++ b/a.c
@@ -1,3 +1,3 @@ int other(void)
 before
-    sort(values);
+    sort_twice(values);
@@ -20,2 +20,2 @@ static void sort(int *values)
 {
--- a/looks like a file
+    swap();
diff --git a/b.c b/b.c
--- a/b.c
+++ b/b.c
@@ -7 +7 @@
 sort_twice(nothing);
-one
+two
"""


def test_changes_of_a_function_come_before_places_that_only_show_it() -> None:
    hunks = list(_hunks_naming(PATCH, ("sort_twice", "sort")))
    assert [(hunk.file, hunk.function, hunk.lines[0][:6]) for hunk in hunks] == [
        ("a.c", "sort_twice", "@@ -1,"),
        ("a.c", "sort", "@@ -20"),
        ("b.c", "sort_twice", "@@ -7 "),
    ]
    assert hunks[1].lines[1:] == (" {", "--- a/looks like a file", "+    swap();")


def test_a_part_of_a_name_does_not_count() -> None:
    assert list(_hunks_naming(PATCH, ("twice", "sor"))) == []


def test_a_word_in_data_or_prose_is_not_a_use_of_a_function() -> None:
    patch = "".join(
        f"diff --git a/{file} b/{file}\n--- a/{file}\n+++ b/{file}\n@@ -1 +1 @@\n+width = 3\n"
        for file in ("Cargo.toml", "README.md", "a.rs")
    )
    assert [hunk.file for hunk in _hunks_naming(patch, ("width",))] == ["a.rs"]


def test_long_places_are_cut() -> None:
    lines = "\n".join(["+swap " + "x" * MAX_LINE_LETTERS] * (MAX_LINES + 5))
    (hunks,) = _hunks_naming(f"+++ b/a.c\n@@ -1 +1 @@\n{lines}\n", ("swap",))
    assert hunks.lines[-1] == "… 6 more lines"
    assert max(map(len, hunks.lines)) == MAX_LINE_LETTERS


@pytest.mark.parametrize(
    ("symbol", "word"),
    [
        ("sort", "sort"),
        ("sort.constprop.0", "sort"),
        ("ns::Table<std::pair<int, char>>::find(int) const", "find"),
        ("bench::parse::h0123456789abcdef", "parse"),
        ("main.(*Table).Find", "Find"),
        ("Table.find", "find"),
        ("[unknown]", "unknown"),
        ("0x401136", ""),
    ],
)
def test_a_symbol_is_searched_by_its_name_in_the_source(symbol: str, word: str) -> None:
    assert _identifier(symbol) == word
