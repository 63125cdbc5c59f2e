"""The live table fits the terminal and has the open comparisons first."""

from __future__ import annotations

from rich.console import Console

from equipoise.campaign.progress import ComparisonStatus
from equipoise.cli.progress_bars import status_table
from equipoise.model.result import Verdict


def status(name: str, verdict: Verdict) -> ComparisonStatus:
    return ComparisonStatus(name, verdict, 1.5, (1.2, None), baseline="a", blocks=9)


def lines(rows: int, *statuses: ComparisonStatus) -> list[str]:
    console = Console(width=100)
    with console.capture() as capture:
        console.print(status_table(statuses, rows))
    return capture.get().splitlines()


def test_open_comparisons_come_first() -> None:
    shown = lines(9, status("b", "slower"), status("c", "undecided"), status("d", "faster"))
    assert [line.split()[0] for line in shown] == ["candidate", "c", "b", "d"]


def test_items_that_do_not_fit_are_counted() -> None:
    many = [status(f"c{number}", "undecided") for number in range(200)]
    shown = lines(10, *many, status("b", "slower"))
    assert len(shown) == 11
    assert shown[-1].strip() == "and 192 more, 191 of them open"


def test_an_intervention_stands_there_with_what_it_closes() -> None:
    confirmed = ComparisonStatus(
        "with jemalloc", "confirmed", None, (None, None), blocks=9, closed_fraction="96 % [91, 101]"
    )
    still_open = ComparisonStatus(
        "with pin", "open", None, (None, None), closed_fraction="10 % [-30, 40]"
    )
    shown = lines(9, status("b", "slower"), confirmed, still_open)
    assert shown[1].split() == "with pin 0 closes 10 % [-30, 40] open".split()
    assert shown[3].split() == "with jemalloc 9 closes 96 % [91, 101] confirmed".split()
