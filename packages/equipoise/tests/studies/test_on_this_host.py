"""If this host cannot run a well-formed study, the error has file, line and key as well."""

from __future__ import annotations

from pathlib import Path

import pytest

from equipoise.design.grid import grid_of
from equipoise.design.site import Site, remove_missing_levels, setting_place
from equipoise.model.errors import UnusableInput
from equipoise.model.study import Study
from equipoise.studies.preparation import with_command, with_levels, without_idle_factors
from equipoise.studies.reader.study import read_study

SITE = Site(Path("/nowhere"), lambda _: None, frozenset({"sse2", "avx2", "fma"}))
NAMED = '[study]\nname = "x"\n'
SORTS = NAMED + '[workload]\ncommand = ["sort", "{n}"]\n'
PLAIN = NAMED + '[workload]\ncommand = ["sort"]\n'
"""Four lines each."""
SERVED = NAMED + '[workload.server]\nclient = ["sort"]\n'
APART = "set the key in one of the two levels, or add an [[exclude]] with both levels"
PIPELINE = 'check its spelling; write a pipeline as ["sh", "-c", "…"]'
NOT_INSTALLED = "install it, or add its folder to the key path of the server"


def read(folder: Path, text: str) -> Study:
    path = folder / "study.toml"
    path.write_text(text, encoding="utf-8")
    return read_study(path, "study.toml")


def prepare(study: Study) -> None:
    """Prepare a study as `equipoise run` does before builds and trials."""
    present, _ = remove_missing_levels(without_idle_factors(study)[0], SITE)
    grid_of(present, SITE, {})


REFUSED = {
    "a program that is not there": (
        NAMED + '[workload]\ncommand = ["srot", "{n}"]\n[factors.n]\nlevels = [1, 2]\n',
        "study.toml:4: [workload] command: there is no program 'srot' on the PATH",
        PIPELINE,
    ),
    "a program that is a folder": (
        NAMED + '[workload]\ncommand = ["/tmp", "{n}"]\n[factors.n]\nlevels = [1, 2]\n',
        "study.toml:4: [workload] command: /tmp is a folder, not a program",
        "give a program in that folder",
    ),
    "a baseline whose program is not there": (
        PLAIN + '[factors.n]\na = { command = "srot" }\nb = {}\n',
        "study.toml:6: [factors.n.a]: the baseline n a cannot run here: there is no program srot",
        "install it",
    ),
    "a server that is not there": (
        SERVED + 'start = ["srot", "{port}", "{n}"]\n[factors.n]\nlevels = [1, 2]\n',
        "study.toml:5: [workload.server] start: there is no program 'srot' on the PATH",
        NOT_INSTALLED,
    ),
    "a question of readiness that cannot be asked": (
        SERVED + 'start = ["sort", "{n}"]\nready = "srot"\n[factors.n]\nlevels = [1, 2]\n',
        "study.toml:6: [workload.server] ready: there is no program 'srot' on the PATH",
        NOT_INSTALLED,
    ),
    "a program of a level's server that is not there": (
        NAMED
        + "[workload]\n[factors.n.srot.server]\n"
        + 'start = ["sort", "{port}"]\nclient = ["{n}"]\n[factors.n.sort]\ncommand = "sort"\n',
        "study.toml:6: [factors.n.srot.server] client: there is no program 'srot' on the PATH",
        PIPELINE,
    ),
    "a single level to compare": (
        SORTS + "[factors.n]\nlevels = [1]\n",
        "study.toml:5: [factors.n]: nothing is left to compare 1 with",
        "add a level to n that can run on this host",
    ),
    "a factor that changes nothing": (
        PLAIN + "[factors.n]\nlevels = [1, 2]\n",
        "study.toml:5: [factors.n]: the factor n changes nothing: no text contains {n}",
        "write {n} in the command, where its level belongs",
    ),
    "a CPU that lacks instructions of every level": (
        PLAIN + '[factors.n]\nrole = "stratum"\n[factors.n.a]\ninstructions = "avx512f"\n',
        "study.toml:5: [factors.n]: no level of n can run here: n a cannot run here: there is no "
        "avx512f in this CPU; it is left out",
        "use a host whose CPU has it",
    ),
    "a variable that two levels set": (
        PLAIN
        + '[factors.n]\na = {}\nb = { env = { X = "1" } }\n'
        + '[factors.m]\nrole = "stratum"\nc = { env = { X = "2" } }\n',
        "study.toml:10: [factors.m.c.env] X: b of n also sets this key, so one of the two "
        "values would have no effect",
        APART,
    ),
    "a command that two levels give": (
        PLAIN
        + '[factors.n]\na = {}\nb = { command = "cat" }\n'
        + '[factors.m]\nrole = "stratum"\nc = { command = "ls" }\n',
        "study.toml:10: [factors.m.c] command: b of n also sets this key, so one of the two "
        "values would have no effect",
        APART,
    ),
    "a library path in the environment beside one": (
        PLAIN
        + '[factors.n]\na = {}\n[factors.n.b]\nlibrary_path = "/tmp"\n'
        + 'env = { LD_LIBRARY_PATH = "/opt" }\n',
        "study.toml:9: [factors.n.b.env] LD_LIBRARY_PATH: library_path also sets this key, so one "
        "of the two values would have no effect",
        APART,
    ),
    "more conditions than a block holds": (
        NAMED
        + '[workload]\ncommand = ["sort", "{n}", "{m}"]\n[factors.n]\n'
        + f'levels = {list(range(1, 41))}\n[factors.m]\nrole = "size"\n'
        + f"levels = {list(range(1, 41))}\n",
        "study.toml:5: [factors]: there are 1600 conditions, but a block has at most 1000",
        "choose fewer levels with factor, or add an [[exclude]]",
    ),
}


@pytest.mark.parametrize("case", REFUSED)
def test_a_study_that_cannot_run_here_is_refused_in_exact_words(case: str, tmp_path: Path) -> None:
    text, what, hint = REFUSED[case]
    study = read(tmp_path, text)
    with pytest.raises(UnusableInput) as caught:
        prepare(study)
    assert (caught.value.what, caught.value.hint) == (what, hint)


def test_levels_with_contradictory_settings_can_be_excluded(tmp_path: Path) -> None:
    text = REFUSED["a variable that two levels set"][0]
    prepare(read(tmp_path, text + "d = {}\n[[exclude]]\nn = 'b'\nm = 'c'\n"))


def test_levels_with_the_same_setting_do_not_contradict_each_other(tmp_path: Path) -> None:
    text = REFUSED["a variable that two levels set"][0]
    prepare(read(tmp_path, text.replace('"2"', '"1"')))


def test_a_missing_program_of_the_command_line_is_reported_as_its_option(tmp_path: Path) -> None:
    study = read(tmp_path, SORTS + "[factors.n]\nlevels = [1, 2]\n")
    with pytest.raises(UnusableInput) as caught:
        prepare(with_command(study, ("srot", "{n}")))
    assert caught.value.what == "--command: there is no program 'srot' on the PATH"


def test_a_size_of_the_command_line_is_a_number(tmp_path: Path) -> None:
    sizes = '[factors.n]\nlevels = [1, 2]\nrole = "size"\n'
    study = read(tmp_path, SORTS + sizes)
    with pytest.raises(UnusableInput, match="n is a size, and 'big' is not a number"):
        with_levels(study, {"n": ("3", "big")})
    assert with_levels(study, {"n": ("3", "2.5")}).factors[0].levels[1].name == "2.5"


def test_conditions_with_equal_names_are_distinguished_by_their_factors(
    tmp_path: Path,
) -> None:
    text = PLAIN + '[factors.n]\n"a b" = {}\na = { args = "1" }\n'
    text += '[factors.m]\nrole = "stratum"\nc = {}\n"b c" = { args = "2" }\n'
    names = [condition.name for condition in grid_of(read(tmp_path, text), SITE, {}).conditions]
    assert names == ["n=a b m=c", "n=a b m=b c", "n=a m=c", "n=a m=b c"]


def test_a_setting_that_took_no_effect_is_found_in_the_file(tmp_path: Path) -> None:
    text = PLAIN + '[factors.n]\nkind = "allocator"\nlevels = ["glibc", "glibc_15k"]\n'
    text += '[factors.m]\nrole = "stratum"\nc = { cpu = 99 }\nd = { env = { X = "1" } }\n'
    study = read(tmp_path, text)
    levels = {"n": "glibc_15k", "m": "c"}
    assert setting_place(study, levels, "cpu", None).label == "study.toml:10: [factors.m.c] cpu"
    tunables = setting_place(study, levels, "env", "GLIBC_TUNABLES")
    assert tunables.label == "study.toml:5: [factors.n.glibc_15k.env] GLIBC_TUNABLES"
