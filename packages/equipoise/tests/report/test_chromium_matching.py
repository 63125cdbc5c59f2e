"""Pages of matching and of logs in a real browser, as the commands write them."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pandas
import pytest

from equipoise.cli.main import run
from equipoise_matching.matching.datasets import lalonde, psid_controls
from packages.equipoise.tests.report.accessibility import assert_accessible
from packages.equipoise.tests.report.chromium import DRAWN, MARKS, Browser, assert_quiet

pytestmark = pytest.mark.live("chromium")

COVARIATES = "age,educ,black,hisp,married,nodegr,re74,re75,u74,u75"
PEOPLE = ("--treatment", "treat", "--covariates", COVARIATES)
COMMANDS = {
    "match": ("match", "nsw.csv", *PEOPLE, "--outcome", "re78", "--caliper", "1"),
    "balance": ("balance", "nsw.csv", *PEOPLE, "--boot", "20"),
    "genmatch": (
        *("genmatch", "psid.csv", *PEOPLE, "--outcome", "re78", "--seed", "1"),
        *("--population", "20", "--generations", "3", "--hard-limit"),
    ),
    "observe": (
        *("observe", "nsw.csv", "--treatment", "treat=1:0", "--outcome", "re78", "--difference"),
        *("--cluster", "none", "--covariates", COVARIATES, "--method", "mahalanobis"),
    ),
}
FIRST_WORDS = {
    "match": "treat raises re78 by 1,8",
    "balance": "After matching",
    "genmatch": "treat raises re78 by 2,361",
    "observe": "Without matching, the log suggests that treat 1 raises re78 by 1,794.",
}
HOSTILE = (
    "<script>alert(1)</script>",
    '"><img src=x onerror=alert(1)>',
    "</title></style><svg onload=alert(1)>",
    "{{ 7 * 7 }} ${alert(1)} javascript:alert(1)",
)
LARGEST = 3_000_000


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """Where the tables of people are, and every command runs."""
    folder = tmp_path_factory.mktemp("pages")
    people = lalonde()
    people.to_csv(folder / "nsw.csv", index=False)
    trained = people[people["treat"] == 1]
    pandas.concat([trained, psid_controls()]).to_csv(folder / "psid.csv", index=False)
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        yield folder


@pytest.fixture(scope="module")
def pages(folder: Path) -> dict[str, Path]:
    """The page of each command."""
    return {name: written(folder / f"{name}.html", *words) for name, words in COMMANDS.items()}


def written(page: Path, *words: str) -> Path:
    """Run one command for its page."""
    assert run([*words, "--quiet", "--report", str(page)]) == 0
    assert page.stat().st_size < LARGEST
    return page


@pytest.mark.parametrize("name", list(COMMANDS))
def test_the_answer_is_on_the_first_screen_the_charts_are_drawn_and_nothing_is_requested(
    browser: Browser, pages: dict[str, Path], name: str
) -> None:
    for width, height in ((1280, 800), (390, 844)):
        browser.events.clear()
        browser.open(pages[name], width, height, ready=DRAWN)
        assert browser.evaluate("document.querySelector('h1').innerText").startswith(
            FIRST_WORDS[name]
        )
        left, top, right, bottom = browser.evaluate(
            "(b => [b.left, b.top, b.right, b.bottom])"
            "(document.querySelector('.verdict').getBoundingClientRect())"
        )
        assert left >= 0
        assert top >= 0
        assert right <= width
        assert bottom <= height
        question, command, moment = browser.evaluate(
            "[...document.querySelectorAll('.origin p')].map(one => one.textContent)"
        )
        assert question.endswith((" From nsw.csv", " From psid.csv"))
        assert command.startswith("equipoise ")
        assert moment.startswith("computed 2")
        assert " UTC · " in moment
        assert browser.evaluate("document.documentElement.scrollWidth") <= width
        marks = browser.evaluate(MARKS)
        assert len(marks) >= 2
        assert all(count >= 2 for count in marks), marks
        assert_quiet(browser)
    assert_accessible(browser)


def test_a_page_of_a_search_turns_dark_and_light(browser: Browser, pages: dict[str, Path]) -> None:
    browser.events.clear()
    browser.open(pages["genmatch"], ready=DRAWN)
    ground = "getComputedStyle(document.body).backgroundColor"
    for theme, color in (("dark", "rgb(20, 24, 29)"), ("light", "rgb(255, 255, 255)")):
        browser.evaluate("document.getElementById('theme').click()")
        browser.wait_until(f"{DRAWN} === '{theme}'")
        assert browser.evaluate(ground) == color
    assert_quiet(browser)


def test_hostile_names_of_columns_files_and_values_do_nothing(
    browser: Browser, folder: Path
) -> None:
    generator = np.random.default_rng(4)
    treated = (np.arange(80) % 2).astype(int)
    table = pandas.DataFrame(
        {
            HOSTILE[0]: treated,
            HOSTILE[1]: generator.normal(size=80) + treated,
            HOSTILE[2]: generator.integers(0, 2, size=80),
            HOSTILE[3]: np.where(np.arange(80) % 4 < 2, *HOSTILE[:2]),
            "y": generator.normal(size=80) + treated,
        }
    )
    source = "<b onclick=alert(1)>.csv"
    table.to_csv(folder / source, index=False)
    matched = written(
        folder / "hostile.html",
        *("match", source, "--treatment", HOSTILE[0], "--outcome", "y"),
        *("--covariates", ",".join(HOSTILE[1:3]), "--by", HOSTILE[3]),
    )
    table[HOSTILE[0]] = np.where(treated == 1, *HOSTILE[1:3])
    table.to_csv(folder / source, index=False)
    observed = written(
        folder / "hostile-log.html",
        *("observe", source, "--treatment", "=".join((HOSTILE[0], ":".join(HOSTILE[1:3])))),
        *("--outcome", "y", "--difference", "--cluster", "none", "--method", "mahalanobis"),
        *("--covariates", HOSTILE[2], "--exact", HOSTILE[3]),
    )
    for page, names in ((matched, HOSTILE), (observed, HOSTILE[1:3])):
        browser.events.clear()
        browser.open(page, ready=DRAWN)
        assert browser.evaluate("document.title").endswith("· Equipoise")
        assert browser.evaluate("document.querySelectorAll('img, b[onclick]').length") == 0
        assert browser.evaluate("document.scripts.length") == 3
        read = browser.evaluate("document.body.textContent")
        assert all(label in read for label in names)
        assert_quiet(browser)


def test_a_hundred_thousand_rows_make_a_page_to_send_that_says_what_stands_for_them(
    browser: Browser, folder: Path
) -> None:
    generator = np.random.default_rng(5)
    x = generator.normal(size=(100_000, 2))
    treated = generator.random(100_000) < 1.0 / (1.0 + np.exp(2.0 - x[:, 0]))
    columns = {"t": treated.astype(int), "a": x[:, 0], "b": x[:, 1], "y": x.sum(axis=1)}
    pandas.DataFrame(columns).to_parquet(folder / "many.parquet")
    arguments = (
        "match",
        "many.parquet",
        "--treatment",
        "t",
        "--covariates",
        "a,b",
        "--outcome",
        "y",
    )
    page = written(folder / "many.html", *arguments)
    browser.events.clear()
    browser.open(page, ready=DRAWN)
    text = browser.evaluate("document.body.innerText")
    assert re.search(r"400 quantiles represent at least \d\d,\d\d\d rows of each group", text)
    assert all(count >= 2 for count in browser.evaluate(MARKS))
    assert_quiet(browser)
