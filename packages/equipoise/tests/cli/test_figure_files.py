"""Where the figures of several runs go."""

from __future__ import annotations

from pathlib import Path

import pytest

from equipoise.cli.writing import folder_name
from packages.equipoise.tests.payloads import LONG, PAYLOADS


@pytest.mark.parametrize("run_id", [*PAYLOADS, LONG], ids=lambda name: name[:20])
def test_the_id_of_a_document_never_leads_out_of_the_folder(run_id: str, tmp_path: Path) -> None:
    folder = tmp_path / folder_name(1, run_id)
    folder.mkdir()
    assert folder.resolve().parent == tmp_path.resolve()


def test_an_id_of_ours_is_kept() -> None:
    assert folder_name(2, "20261121-223452-cbe6") == "2-20261121-223452-cbe6"
