"""Six candidates get a ranking and a winner."""

from __future__ import annotations

import json
from pathlib import Path

from packages.equipoise.tests.cli.conftest import Equipoise

SECONDS = ("0.03", "0.01", "0.04", "0.05", "0.06", "0.07")


def test_the_fastest_of_six_is_the_first_sentence_everywhere(
    equipoise: Equipoise, tmp_path: Path
) -> None:
    names = [word for seconds in SECONDS for word in ("-n", f"nap {seconds}")]
    answer = equipoise(
        "compare",
        *(f"sleep {seconds}" for seconds in SECONDS),
        *names,
        *("--blocks", "20", "--min-seconds", "0", "--warmup", "0", "--report", "page.html"),
    )
    assert answer.status == 0, answer.err
    (ranking,) = json.loads(equipoise("show", "--json", "-").out)["ranking"]
    sentence = ranking["summary"]
    assert sentence.startswith("nap 0.01 is the fastest of 6: 2.")
    assert (ranking["contenders"], ranking["leader"]) == (["nap 0.01"], "nap 0.01")
    assert sentence.endswith(" times as fast as nap 0.03.")
    assert [one["name"] for one in ranking["conditions"]][0] == "nap 0.01"
    table, _, rest = answer.out.partition(sentence)
    assert "nap 0.07" in table
    assert "\n5 comparisons: 1 faster, 4 slower" in rest
    page = (tmp_path / "page.html").read_text(encoding="utf-8")
    assert sentence in page.partition("<h1")[2].partition("</h1>")[0]
