"""A study's screen: a row for each condition, grouped by where it was compared."""

from __future__ import annotations

from msgspec.structs import replace

from equipoise.model.record import CampaignWarning
from equipoise.model.result import ResultDocument
from packages.equipoise.tests.documents import comparison_of, document_of
from packages.equipoise.tests.report.forms import screen

SIZES, LEVELS = ("1", "2"), ("glibc", "je[b]malloc")


def study() -> ResultDocument:
    """Two allocators at two sizes."""
    names = {f"{level} rows={size}": (level, size) for level in LEVELS for size in SIZES}
    document = document_of(*names, blocks=9)
    conditions = tuple(
        replace(
            condition,
            levels={
                "allocator": names[condition.name][0],
                "rows": names[condition.name][1],
                "algorithm": "only one",
            },
        )
        for condition in document.conditions
    )
    base, candidate = LEVELS
    comparisons = tuple(
        replace(
            comparison_of(f"{base} rows={size}", f"{candidate} rows={size}", ratio, 9),
            stratum={"rows": size},
            blocks_to_go=to_go,
        )
        for size, ratio, to_go in (("1", 1.1, None), ("2", None, 12))
    )
    run = replace(document.run, study="allocators")
    return replace(document, run=run, conditions=conditions, comparisons=comparisons)


def test_conditions_stand_in_groups_with_their_comparison() -> None:
    lines = [line.rstrip() for line in screen(study()).splitlines()]
    (first,) = [place for place, line in enumerate(lines) if line.startswith("allocator")]
    table = lines[first:]
    rows = [line.split()[0] for line in table[: table.index("")]]
    assert rows == ["allocator", "rows", *LEVELS, "rows", *LEVELS]
    assert [line for line in lines if line.startswith("rows")] == ["rows 1", "rows 2"]
    candidates = [line for line in lines if line.startswith(LEVELS[1])]
    assert candidates[0].endswith("+10.0 %  +7.80 % to +12.2 %  slower")
    assert candidates[1].split()[-2:] == ["open", "undecided"]
    assert sum("baseline" in line for line in table[1:]) == len(SIZES)


def test_it_says_how_many_came_out_how_and_how_far_the_next_is() -> None:
    assert (
        "2 comparisons: 1 slower, 1 undecided; about 12 more blocks would probably decide the next"
        in screen(study())
    )


def test_three_warnings_of_one_code_are_shown_and_the_others_counted() -> None:
    many = tuple(
        CampaignWarning("inflated", f"the effect of c{n}", "--precision 1") for n in range(9)
    )
    other = CampaignWarning("other", "else", "change it")
    printed = screen(replace(study(), warnings=(*many, other)))
    lines = [line.rstrip() for line in printed.splitlines()]
    assert sum(line.startswith("warning: the effect") for line in lines) == 3
    assert "  and 6 more like these; --json has all" in lines
    assert "warning: else" in lines
