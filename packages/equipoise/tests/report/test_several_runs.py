"""Several campaigns share a page: one heading, a list of them, one bound on size."""

from __future__ import annotations

import re

from msgspec.structs import replace

from packages.equipoise.tests.documents import document_of, sized_document
from packages.equipoise.tests.report.forms import page
from packages.equipoise.tests.report.test_html import LARGEST, Outline, reported


def test_ids_are_unique_though_several_runs_share_the_page() -> None:
    outline = Outline(page([reported(document_of()), reported(sized_document())]))
    identities = [one["id"] for _, one in outline.elements if "id" in one]
    assert len(identities) == len(set(identities))
    assert len(outline.tags("article")) == 2
    assert len(outline.tags("nav")) == 1


def test_several_campaigns_stand_under_one_heading_and_a_list_tells_them_apart() -> None:
    document = document_of(blocks=5)
    repeated = replace(document, run=replace(document.run, id="20260302-090000-cd34"))
    outline = Outline(page([reported(document), reported(repeated)]))
    levels = [int(tag[1]) for tag, _ in outline.elements if re.fullmatch("h[1-6]", tag)]
    assert levels[0] == 1
    assert levels.count(1) == 1
    assert levels.count(2) == 2
    assert all(after - before <= 1 for before, after in zip(levels, levels[1:], strict=False))
    links = [tag["href"] for tag in outline.tags("a")]
    assert {"#run-1", "#run-2"} <= set(links)
    listed = outline.texts[: outline.texts.index("Conditions")]
    assert {document.run.id, repeated.run.id} <= set(listed)


def test_more_trials_are_binned_over_the_whole_page_and_the_page_says_so() -> None:
    documents = [document_of(blocks=1500, seed=seed) for seed in (1, 2)]
    text = page([reported(document) for document in documents])
    assert len(text.encode()) < LARGEST
    assert text.count("trials are too many for a dot each") == 2
