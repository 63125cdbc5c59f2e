"""Names in other tools' files, and the names of the files, are text in whatever comes of them."""

from __future__ import annotations

import csv
import io
import json
import os
import sqlite3
import unicodedata
from collections.abc import Callable, Sequence
from html.parser import HTMLParser
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest
from markdown_it import MarkdownIt

from equipoise import report
from equipoise.cli.main import run
from equipoise.interop.formats import FORMATS

PAYLOADS = (
    "<script>alert(1)</script><img src=x onerror=alert(1)>",
    "</td></table><h1>big</h1> {{ 7*7 }}",
    "'; DROP TABLE trial; --",
    '$(touch pwned) `touch pwned` ; touch pwned | "touch pwned"',
    "\x1b[31mred\x1b]0;title\x07 turned \u202earound",
    "line\nbreak\u2028and\ttab",
    "\\input{/etc/passwd} } 100 % & $x^2$",
    "n" * 2000,
)
PATHS = (
    'a"; rm -rf x;$(touch pwned)<script>alert(1)<',
    "<img src=x onerror=alert(1)>",
    "two\nlines",
    "\x1b[31mred\x1b]0;title\x07",
    "turned \u202earound",
    os.fsdecode(b"bytes \xff\xfe"),
    "n" * 240,
    "-rf",
    "'; DROP TABLE trial; --",
    "=1+1",
    "{{ 7*7 }}",
    "```\n\n<img src=x onerror=alert(1)>\n",
)
EXPORTS = ("csv", "parquet", "json", "bmf", "markdown", "latex")
TEMPLATE = Path(report.__file__).parent / "templates" / "page.html.jinja"
SCRIPTS = TEMPLATE.read_text(encoding="utf-8").count("<script")
UNSAFE = {"Cc", "Cf", "Cs", "Zl", "Zp"}
PrintedBy = Callable[..., str]


class Elements(HTMLParser):
    """How many elements of each name a page has; fails on elements that act without a click."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.counts: dict[str, int] = {}
        self.texts: list[str] = []
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Count it."""
        self.counts[tag] = self.counts.get(tag, 0) + 1
        assert not [name for name, _ in attrs if name.startswith("on")]

    def handle_data(self, data: str) -> None:
        """Note what is read."""
        self.texts.append(data.strip())


@pytest.fixture
def printed_by(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> PrintedBy:
    """Output of one command line; it must succeed, and send nothing that steers a terminal."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("EQUIPOISE_LEDGER", raising=False)

    def call(*arguments: str) -> str:
        status = run(arguments)
        printed = capsys.readouterr()
        assert status == 0, printed.err
        assert not steering(printed.out + printed.err)
        assert not list(tmp_path.rglob("pwned"))
        return printed.out

    return call


def steering(text: str) -> set[str]:
    """Characters that do something to a terminal, line ends apart."""
    return {letter for letter in text if letter != "\n" and unicodedata.category(letter) in UNSAFE}


def as_unicode(name: str) -> str:
    """With the bytes that are not text as escapes, as a document has them."""
    return name.encode("utf-8", "backslashreplace").decode()


def in_one_line(name: str) -> str:
    """As a format that has a line for each benchmark can hold it."""
    return " ".join("".join(c for c in name if unicodedata.category(c) not in UNSAFE).split())


def as_hyperfine(names: Sequence[str]) -> str:
    """Each name is a command, a parameter and its value."""
    results = [{"command": name, "times": [1, 2], "parameters": {name: name}} for name in names]
    return json.dumps({"results": results})


def as_pyperf(names: Sequence[str]) -> str:
    """Each name is a benchmark and its host."""
    runs = [{"values": [1.0, 2.0]}, {"values": [1.5]}]
    benchmarks = [{"metadata": {"name": label, "hostname": label}, "runs": runs} for label in names]
    return json.dumps({"version": "1.0", "benchmarks": benchmarks})


def as_google_benchmark(names: Sequence[str]) -> str:
    """Each name is a benchmark and a counter of it."""
    entries = [{"name": label, "real_time": 1.0, "cpu_time": 1.0, label: 2} for label in names]
    return json.dumps({"context": {names[0]: names[0]}, "benchmarks": entries})


def as_pytest_benchmark(names: Sequence[str]) -> str:
    """Each name is a test."""
    tests = [{"name": label, "fullname": label, "stats": {"mean": 1.0}} for label in names]
    return json.dumps({"machine_info": {names[0]: names[0]}, "benchmarks": tests})


def as_jmh(names: Sequence[str]) -> str:
    """Each name is a benchmark, a parameter, its value and what a profiler measured."""
    metric = {"scoreUnit": "ns/op", "rawData": [[1.0, 2.0]]}
    return json.dumps(
        [
            {"benchmark": label, "mode": "avgt", "params": {label: label}}
            | {"primaryMetric": metric, "secondaryMetrics": {label: metric}}
            for label in names
        ]
    )


def as_go(names: Sequence[str]) -> str:
    """Each name is a benchmark and a unit."""
    words = ["_".join(in_one_line(label).split()) for label in names]
    lines = [f"Benchmark{word} 1 2.5 ns/op 3 {word}" for word in words]
    return "\n".join([f"pkg: {in_one_line(names[0])}", *lines, "PASS", ""])


def as_libtest(names: Sequence[str]) -> str:
    """Each name is a test."""
    return "".join(f"test {in_one_line(label)} ... bench: 5 ns/iter (+/- 1)\n" for label in names)


def as_catch2(names: Sequence[str]) -> str:
    """Each name is a test case and its benchmark."""
    report = ElementTree.Element("Catch", name="t")
    for label in names:
        text = "".join(c for c in label if c.isprintable())
        case = ElementTree.SubElement(report, "TestCase", name=text)
        benchmark = ElementTree.SubElement(case, "BenchmarkResults", name=text)
        ElementTree.SubElement(benchmark, "mean", value="5")
    return ElementTree.tostring(report, encoding="unicode")


def as_divan(names: Sequence[str]) -> str:
    """Each name is a benchmark."""
    leaf = "├─ {}  1 ns │ 1 ns │ 1 ns │ 1 ns │ 100 │ 100\n"
    head = "p  fastest │ slowest │ median │ mean │ samples │ iters\n"
    return head + "".join(leaf.format(in_one_line(label)) for label in names)


def as_nanobench(names: Sequence[str]) -> str:
    """Each name is a benchmark."""
    head = "| ns/op | op/s | err% | total | benchmark\n|--:|--:|--:|--:|:----------\n"
    rows = (label.replace("`", "``").replace("\r", "") for label in names)
    return head + "".join(f"| 5.00 | 2.00 | 0.1% | 0.00 | `{row}`\n" for row in rows)


def as_rebench(names: Sequence[str]) -> str:
    """Each name is a benchmark and an executor."""
    cells = [in_one_line(label) for label in names]
    return "".join(f"1\t1\t2.5\tms\ttotal\t{cell}\t{cell}\tSuite\t\t1\t\t\n" for cell in cells)


def as_sysbench(names: Sequence[str]) -> str:
    """It has no names of its own: that of its file is what was run."""
    return "sysbench 1.0.20 (x)\n    total time:  2.5s\n    total number of events:  5\n"


def as_vitest(names: Sequence[str]) -> str:
    """Each name is a benchmark and a group."""
    groups = [{"fullName": label, "benchmarks": [{"name": label, "mean": 1.0}]} for label in names]
    return json.dumps({"files": [{"filepath": names[0], "groups": groups}]})


def as_csv(names: Sequence[str]) -> str:
    """Each name is a condition and a host."""
    text = io.StringIO()
    writer = csv.writer(text)
    writer.writerow(["condition", "value", "host", names[0]])
    writer.writerows([label, value, label, label] for label in names for value in (1.0, 2.0))
    return text.getvalue()


WRITERS = {
    "hyperfine": as_hyperfine,
    "pyperf": as_pyperf,
    "google-benchmark": as_google_benchmark,
    "pytest-benchmark": as_pytest_benchmark,
    "jmh": as_jmh,
    "go": as_go,
    "libtest": as_libtest,
    "catch2": as_catch2,
    "divan": as_divan,
    "nanobench": as_nanobench,
    "rebench": as_rebench,
    "sysbench": as_sysbench,
    "vitest": as_vitest,
    "csv": as_csv,
}


def made(folder: Path, form: str) -> str:
    """A file or folder of this format whose names are the payloads; its own name is one too."""
    path = folder / PATHS[[*FORMATS].index(form) % len(PATHS)]
    if form != "criterion":
        path.write_text(WRITERS[form](PAYLOADS), encoding="utf-8", newline="")
        return path.name
    for place, name in enumerate(PAYLOADS):
        saved = path / str(place) / PATHS[place]
        saved.mkdir(parents=True)
        (saved / "sample.json").write_text('{"iters": [1, 2], "times": [1, 3]}')
        (saved / "benchmark.json").write_text(json.dumps({"full_id": name}))
    return path.name


def as_github_shows(markdown: str) -> str:
    """The page that Markdown becomes, HTML in it included."""
    shown: str = MarkdownIt("commonmark", {"html": True}).enable("table").render(markdown)
    return shown


def no_element_out_of_a_name(page: str, scripts: int = 0) -> Elements:
    """The elements of a page, with no image and no script but its own."""
    found = Elements(page)
    assert "img" not in found.counts
    assert found.counts.get("script", 0) == scripts
    return found


def intact(ledger: Path, runs: int) -> None:
    """The ledger holds so many runs, each table is there, and nothing is damaged."""
    with sqlite3.connect(f"file:{ledger}?mode=ro", uri=True) as connection:
        assert connection.execute("PRAGMA integrity_check").fetchone() == ("ok",)
        assert connection.execute("SELECT count(*) FROM run").fetchone() == (runs,)
        assert connection.execute("SELECT count(*) FROM trial").fetchone()[0] >= runs
    connection.close()


@pytest.mark.parametrize("form", FORMATS)
def test_names_of_every_format_stay_text_in_the_ledger_and_in_every_form(
    form: str, tmp_path: Path, printed_by: PrintedBy
) -> None:
    printed_by("import", "--json", "run.json", "--", made(tmp_path, form))
    document: dict[str, Any] = json.loads((tmp_path / "run.json").read_bytes())
    names = [condition["name"] for condition in document["conditions"]]
    if form not in ("catch2", "divan", "go", "libtest", "nanobench", "rebench", "sysbench"):
        # The longest is cut.
        assert all(any(payload[:100] in name for name in names) for payload in PAYLOADS)
    printed_by("show")
    printed_by("list", "runs")
    for ending in ("md", "tex", "csv"):
        printed_by("report", "last", "-o", f"report.{ending}")
    assert not steering((tmp_path / "report.md").read_text(encoding="utf-8"))
    no_element_out_of_a_name(as_github_shows((tmp_path / "report.md").read_text(encoding="utf-8")))
    for export in (*EXPORTS, *(("hyperfine",) if form in ("hyperfine", "sysbench") else ())):
        printed_by("export", "last", "--format", export, "-o", f"export.{export}")
    with (tmp_path / "export.csv").open(encoding="utf-8", newline="") as file:
        assert {row["condition"] for row in csv.DictReader(file)} <= set(names)
    assert list(json.loads((tmp_path / "export.bmf").read_text())) == [
        as_unicode(name)[:1024] for name in names
    ]
    intact(tmp_path / ".equipoise" / "ledger.db", runs=1)


def test_one_page_of_imports_has_no_element_out_of_a_name(
    tmp_path: Path, printed_by: PrintedBy
) -> None:
    for form in ("hyperfine", "criterion", "rebench"):
        printed_by("import", "--quiet", "--", made(tmp_path, form))
    runs = [line.split()[0] for line in printed_by("list", "runs").splitlines()[3:]]
    assert len(runs) == 3
    printed_by("report", *runs, "-o", "page.html")
    page = (tmp_path / "page.html").read_text(encoding="utf-8")
    assert no_element_out_of_a_name(page, SCRIPTS).counts["h1"] == 1


def test_names_of_files_are_text_wherever_a_run_tells_them(
    tmp_path: Path, printed_by: PrintedBy
) -> None:
    labels = []
    for path in PATHS:
        (tmp_path / path).write_text("condition,wall_s\na,1\na,1.5\n")
        labels += ["-n", path]
    printed_by("import", *labels, "--json", "run.json", "--", *PATHS)
    document: dict[str, Any] = json.loads((tmp_path / "run.json").read_bytes())
    assert document["imported"]["source"]["files"] == list(map(as_unicode, PATHS))
    printed_by("show")
    for ending in ("md", "tex", "csv", "html"):
        printed_by("report", "last", "-o", f"report.{ending}")
    for export in (*EXPORTS, "hyperfine"):
        printed_by("export", "last", "--format", export, "-o", f"export.{export}")
    page = (tmp_path / "report.html").read_text(encoding="utf-8")
    assert no_element_out_of_a_name(page, SCRIPTS).counts["h1"] == 1
    no_element_out_of_a_name(as_github_shows((tmp_path / "report.md").read_text(encoding="utf-8")))
    intact(tmp_path / ".equipoise" / "ledger.db", runs=1)
