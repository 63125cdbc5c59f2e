"""Fixtures of the tests of the studies: their own programs and libraries."""

from __future__ import annotations

from pathlib import Path

import pytest

import equipoise_studies
from equipoise.model.packages import NATIVE_FOLDER


@pytest.fixture(scope="session")
def native_folder() -> Path:
    """The folder of the workloads, the probes and the preloadable allocator."""
    folder = Path(equipoise_studies.__file__).parent / NATIVE_FOLDER
    if not folder.is_dir():
        pytest.fail(f"no {folder}: run `make build`")
    return folder
