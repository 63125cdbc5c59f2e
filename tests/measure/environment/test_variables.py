"""Of environment variables only those of a list are recorded: a ledger is passed on."""

from __future__ import annotations

import json
from pathlib import Path

from equipoise.design.chance import ENVIRONMENT_SIZE, SEEDS
from equipoise.design.libraries import BLAS_LIBRARIES
from equipoise.measure.environment import Host, snapshot
from equipoise.measure.environment.system import size_bytes
from equipoise.model.redaction import TUNING_VARIABLES
from equipoise.why.interventions.runtime import THREAD_VARIABLES


def test_what_changes_a_program_is_recorded_and_secrets_are_not(tmp_path: Path) -> None:
    found = snapshot(
        Host(tmp_path),
        {
            "LD_PRELOAD": "libjemalloc.so.2",
            "MALLOC_ARENA_MAX": "1",
            "LC_ALL": "C",
            "AWS_SECRET_ACCESS_KEY": "hunter2",
            "DATABASE_URL": "postgres://me:hunter2@host",
        },
    )
    assert found["variables"] == {
        "LC_ALL": "C",
        "LD_PRELOAD": "libjemalloc.so.2",
        "MALLOC_ARENA_MAX": "1",
    }
    assert "hunter2" not in json.dumps(found)


def test_a_name_that_only_begins_like_one_of_the_list_is_not_recorded(tmp_path: Path) -> None:
    names = ("LC_API_TOKEN", "OMP_KEY", "MALLOC_PASSWORD", "OPENBLAS_X", "BLIS_Y")
    found = snapshot(Host(tmp_path), dict.fromkeys(names, "hunter2"))
    assert found["variables"] == {}
    assert "hunter2" not in json.dumps(found)


def test_every_variable_that_equipoise_sets_itself_is_known() -> None:
    held = {name for source in (*SEEDS, ENVIRONMENT_SIZE) for name in source.environment}
    of_libraries = {
        name
        for one in BLAS_LIBRARIES
        for name in (one.core_variable, one.threads_variable)
        if name is not None
    }
    assert held | of_libraries | set(THREAD_VARIABLES) <= TUNING_VARIABLES


def test_what_matters_and_may_hold_a_secret_is_named_without_its_value(tmp_path: Path) -> None:
    environment = {"PATH": "/home/alice/bin", "JAVA_TOOL_OPTIONS": "-Dpassword=hunter2"}
    found = snapshot(Host(tmp_path), environment)
    assert found["variables_set_but_withheld"] == ["JAVA_TOOL_OPTIONS", "PATH"]
    assert "alice" not in json.dumps(found)
    assert "hunter2" not in json.dumps(found)


def test_bytes_that_are_no_text_can_be_written_as_json(tmp_path: Path) -> None:
    found = snapshot(Host(tmp_path), {"LD_PRELOAD": "/lib/\udcff.so"})
    assert found["variables"]["LD_PRELOAD"] == "/lib/\\xff.so"
    assert json.dumps(found).encode("utf-8")


def test_the_size_of_the_environment_counts_names_signs_and_ends() -> None:
    assert size_bytes({}) == 0
    assert size_bytes({"A": "xyz", "BC": ""}) == len("A=xyz0") + len("BC=0")
    assert size_bytes({"A": "\udcff"}) == len("A=?0")
