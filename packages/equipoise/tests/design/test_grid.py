"""The factors of a study become conditions and contrasts."""

from __future__ import annotations

import shutil
from dataclasses import replace
from pathlib import Path

import pytest

from equipoise.design.grid import Grid, build_lines, grid_of
from equipoise.design.site import Site, remove_missing_levels
from equipoise.model.errors import UnusableInput
from equipoise.model.plan import Process
from equipoise.model.study import (
    ComparedFactor,
    Factor,
    Level,
    QuickForm,
    ServerWorkload,
    Study,
    Workload,
)
from equipoise.studies.data_sets import named_data
from equipoise.studies.preparation import (
    chosen_levels,
    quick_form,
    with_command,
    with_levels,
    without_idle_factors,
)

HERE = {"liba.so": "/lib/liba.so", "libb.so": "/lib/libb.so"}
SITE = Site(Path("/nowhere"), HERE.get)
SORT = shutil.which("sort")


def free_factor(name: str, *levels: str, size: bool = False) -> Factor:
    return Factor(
        name,
        tuple(Level(level) for level in levels),
        role="size" if size else "treatment",
        has_plain_levels=True,
    )


def study_of(*factors: Factor, **given: object) -> Study:
    usual: dict[str, object] = {
        "workload": Workload(("sort", "{allocator}", "{{allocator}}", "{other}")),
        "compared": ComparedFactor("allocator", "a"),
    }
    return Study("made up", "/study", factors=factors, **(usual | given))  # type: ignore[arg-type]


ALLOCATOR = Factor(
    "allocator", (Level("a"), Level("b", preload=("liba.so",)), Level("c", {"X": "{rows}"}))
)
ROWS = free_factor("rows", "10", "20", size=True)


def grid(study: Study, builds: dict[str, str] | None = None) -> Grid:
    return grid_of(study, SITE, builds or {})


def test_each_candidate_is_compared_at_each_size_with_the_baseline_there() -> None:
    study_grid = grid(study_of(ALLOCATOR, ROWS))
    names = [condition.name for condition in study_grid.conditions]
    assert names == [f"{level} rows={rows}" for level in "abc" for rows in (10, 20)]
    pairs = [
        (names[contrast.baseline], names[contrast.candidate]) for contrast in study_grid.contrasts
    ]
    assert pairs == [
        (f"a rows={rows}", f"{level} rows={rows}") for level in "bc" for rows in (10, 20)
    ]
    assert study_grid.contrasts[1].stratum == {"rows": "20"}
    assert {contrast.factor for contrast in study_grid.contrasts} == {"allocator"}


def test_levels_replace_the_names_of_their_factors() -> None:
    study_grid = grid(study_of(ALLOCATOR, ROWS))
    last = study_grid.conditions[-1]
    assert last.command == (SORT, "c", "{allocator}", "{other}")
    assert last.environment == {"X": "20"}
    assert last.levels == {"allocator": "c", "rows": "20"}
    assert study_grid.conditions[2].environment == {"LD_PRELOAD": "/lib/liba.so"}


def test_settings_of_several_factors_are_joined() -> None:
    other = Factor(
        "other", (Level("b", preload=("libb.so",), arguments=("-v",), process=Process(cpus=(0,))),)
    )
    study_grid = grid(study_of(ALLOCATOR, other))
    condition = study_grid.conditions[1]
    assert condition.environment == {"LD_PRELOAD": "/lib/liba.so /lib/libb.so"}
    assert condition.command[-1] == "-v"
    assert condition.process.cpus == (0,)


def test_excluded_conditions_are_neither_run_nor_compared() -> None:
    study = study_of(ALLOCATOR, ROWS, exclusions=({"allocator": ("a", "c"), "rows": ("20",)},))
    study_grid = grid(study)
    names = [condition.name for condition in study_grid.conditions]
    assert names == ["a rows=10", "b rows=10", "b rows=20", "c rows=10"]
    assert len(study_grid.contrasts) == 2


def test_without_a_comparison_everything_runs_and_nothing_is_compared() -> None:
    study = study_of(ALLOCATOR, ROWS, compared=ComparedFactor("allocator", "a", {"rows": ("20",)}))
    study_grid = grid(study)
    assert len(study_grid.conditions) == 6
    assert [contrast.stratum for contrast in study_grid.contrasts] == [{"rows": "10"}] * 2
    quick = QuickForm(not_at={"allocator": ("c",)})
    study_grid = grid(quick_form(replace(study, quick=quick)))
    assert [
        study_grid.conditions[contrast.candidate].levels["allocator"]
        for contrast in study_grid.contrasts
    ] == ["b"]
    chosen = with_levels(study, {"rows": ("20",)})
    assert len(grid(chosen).contrasts) == 2


def test_a_level_that_is_not_installed_is_named_with_its_package_and_left_out() -> None:
    absent = Level("d", preload=("libd.so",), package="libd1")
    factor = Factor("allocator", (*ALLOCATOR.levels, absent))
    study, notices = remove_missing_levels(study_of(factor), SITE)
    assert study.factor("allocator") == ALLOCATOR
    assert [(notice.code, notice.hint) for notice in notices] == [
        ("level_missing", "apt install libd1")
    ]
    assert "allocator d cannot run here: there is no libd.so" in notices[0].summary
    with pytest.raises(UnusableInput, match="the baseline allocator d cannot run here"):
        remove_missing_levels(study_of(factor, compared=ComparedFactor("allocator", "d")), SITE)


def test_nothing_left_to_compare_is_an_error() -> None:
    with pytest.raises(UnusableInput, match="nothing is left to compare a with"):
        grid(with_levels(study_of(ALLOCATOR), {"allocator": ("a",)}))


def test_a_built_level_finds_its_folder() -> None:
    factor = Factor("allocator", (Level("a", build="make {allocator} O={build}"), Level("b")))
    study = study_of(factor, workload=Workload(("sort", "{build}/x")))
    assert build_lines(study) == {"a": "make a O={build}"}
    study_grid = grid(study, {"a": "/built/a"})
    assert study_grid.conditions[0].command == (SORT, "/built/a/x")


def test_with_a_server_the_levels_change_the_server() -> None:
    server = ServerWorkload(("sort", "{folder}"), ready=("sort",))
    study_grid = grid(study_of(ALLOCATOR, workload=Workload(("sort", "{port}"), server=server)))
    condition = study_grid.conditions[1]
    assert condition.environment == {}
    assert condition.server is not None
    assert condition.server.environment == {"LD_PRELOAD": "/lib/liba.so"}
    assert condition.server.start == (SORT, "{folder}")


def test_a_level_may_bring_its_server_and_change_the_client() -> None:
    server = ServerWorkload(("sort", "{folder}"), ready=("sort",), trial="interval")
    systems = Factor("system", (Level("sorted", server=server, command=("sort", "{port}")),))
    ways = Factor("way", (Level("a"), Level("b", client_arguments=("--tcp",), client_cpus=(0,))))
    usual = {"workload": Workload(()), "compared": ComparedFactor("way", "a")}
    first, second = grid(study_of(systems, ways, **usual)).conditions
    assert (first.command, second.command) == ((SORT, "{port}"), (SORT, "{port}", "--tcp"))
    assert (first.process.cpus, second.process.cpus) == (None, (0,))
    assert first.server == second.server
    assert first.server is not None
    assert first.server.trial == "interval"


def test_programs_of_a_server_are_looked_for_in_its_own_path_newest_first(tmp_path: Path) -> None:
    for version in ("9", "15"):
        (tmp_path / version).mkdir()
        (tmp_path / version / "serve").touch(mode=0o755)
    server = ServerWorkload(("serve",), ready=("serve",), path=(f"{tmp_path}/*",))
    study_grid = grid(study_of(ALLOCATOR, workload=Workload(("serve",), server=server)))
    newest = f"{tmp_path}/15/serve"
    found = study_grid.conditions[0].server
    assert found is not None
    assert (study_grid.conditions[0].command, found.start, found.ready) == ((newest,),) * 3
    assert found.search_path == (f"{tmp_path}/15", f"{tmp_path}/9")


def test_a_program_that_a_server_needs_is_named_with_its_package() -> None:
    needs = {"sort": "coreutils", "no-such-server": "no-such-package"}
    server = ServerWorkload(("sort",), ready=("sort",), needs=needs)
    study = study_of(ALLOCATOR, workload=Workload(("sort",), server=server))
    with pytest.raises(UnusableInput, match="there is no program 'no-such-server'") as caught:
        remove_missing_levels(study, SITE)
    assert caught.value.hint == "apt install no-such-package"


def test_a_level_whose_server_is_not_installed_is_left_out_with_its_package() -> None:
    installed = ServerWorkload(("sort",), ready=("sort",))
    absent = ServerWorkload(("no-such-server",), ready=("sort",), needs={"no-such-server": "some"})
    systems = Factor(
        "system",
        (
            Level("a", server=installed, command=("sort",)),
            Level("b", server=absent, command=("sort",)),
        ),
    )
    study, notices = remove_missing_levels(study_of(systems, workload=Workload(())), SITE)
    assert [level.name for level in study.factors[0].levels] == ["a"]
    assert [(notice.code, notice.hint) for notice in notices] == [
        ("level_missing", "apt install some")
    ]


def test_a_level_for_another_cpu_is_left_out() -> None:
    placed = Factor("allocator", (Level("a"), Level("b"), Level("c", client_cpus=(9999,))))
    study, notices = remove_missing_levels(study_of(placed), SITE)
    assert [level.name for level in study.factors[0].levels] == ["a", "b"]
    assert "there is no CPU 9999 that Equipoise may use" in notices[0].summary


def test_levels_are_chosen_on_the_command_line() -> None:
    study = study_of(ALLOCATOR, ROWS)
    chosen = with_levels(study, chosen_levels(study, ["rows=5,7", "allocator=c,b"]))
    assert [[level.name for level in factor.levels] for factor in chosen.factors] == [
        ["c", "b"],
        ["5", "7"],
    ]
    assert chosen.compared == ComparedFactor("allocator", "c")
    with pytest.raises(UnusableInput, match="allocator has no level 'z'"):
        with_levels(study, {"allocator": ("z",)})
    with pytest.raises(UnusableInput, match="has no factor 'size'"):
        chosen_levels(study, ["size=1"])
    with pytest.raises(UnusableInput, match="is not of the form NAME=LEVEL,LEVEL"):
        chosen_levels(study, ["rows"])


def test_the_quick_form_has_its_own_levels_and_budget() -> None:
    quick = QuickForm(levels={"rows": ("10",)}, budget=5.0, command=("sort", "quickly"))
    study_grid = quick_form(study_of(ALLOCATOR, ROWS, quick=quick))
    assert study_grid.measure.budget == 5.0
    assert study_grid.workload.command == ("sort", "quickly")
    assert len(study_grid.factors[1].levels) == 1
    with pytest.raises(UnusableInput, match="has no quick form"):
        quick_form(study_of(ALLOCATOR))


def test_another_program_can_be_compared_in_the_same_way() -> None:
    study = with_command(study_of(ALLOCATOR), ("sort", "-r"))
    assert grid(study).conditions[0].command == (SORT, "-r")


def test_a_factor_that_no_text_names_is_left_out_and_reported() -> None:
    idle, used = free_factor("idle", "1", "2"), free_factor("other", "1", "2")
    study, notices = without_idle_factors(
        study_of(ALLOCATOR, idle, used, exclusions=({"idle": ("1",)}, {"other": ("1",)}))
    )
    assert study.factors == (ALLOCATOR, used)
    assert study.exclusions == ({"other": ("1",)},)
    assert [notice.code for notice in notices] == ["factor_idle"]
    with pytest.raises(UnusableInput, match="the factor idle changes nothing"):
        without_idle_factors(study_of(idle, compared=ComparedFactor("idle", "1")))


def test_a_level_whose_program_is_not_installed_is_left_out_and_named() -> None:
    levels = (
        Level("here", command=("sh", "-c", "true")),
        Level("there", command=("no-such-program-here",), package="a-package"),
        Level("built", build="no-such-compiler-here -o {build}/x x.c"),
    )
    study = Study("s", "/", Workload(("true",)), (Factor("program", levels, role="size"),))
    kept, notices = remove_missing_levels(study, Site(Path("/nowhere"), lambda _: None))
    assert [level.name for level in kept.factors[0].levels] == ["here"]
    assert "program no-such-program-here" in notices[0].summary
    assert notices[0].hint == "apt install a-package"
    assert "program no-such-compiler-here" in notices[1].summary


def test_the_only_candidate_that_is_missing_is_named_with_its_hint(tmp_path: Path) -> None:
    away = str(tmp_path / "away")
    missing = Level("b", process=Process(away), package="elsewhere")
    study = study_of(Factor("allocator", (Level("a"), missing)))
    with pytest.raises(UnusableInput) as raised:
        remove_missing_levels(study, SITE)
    assert raised.value.what.startswith("nothing is left to compare a with: allocator b cannot run")
    assert f"there is no folder {away}" in raised.value.what
    assert raised.value.hint == "apt install elsewhere"


def test_the_rows_appear_only_where_they_are_named() -> None:
    rows = Workload(("sort", "{allocator}", "{data}"), data="lalonde")
    study = study_of(ALLOCATOR, workload=replace(rows, data_argument="/rows{allocator}.csv"))
    assert named_data(study) == "lalonde"
    assert grid(study).conditions[0].command[1:] == ("a", "/rows{allocator}.csv")
    assert named_data(with_command(study, ("sort", "{allocator}"))) is None


def test_a_program_that_a_study_lacks_is_not_replaced_by_an_option_that_it_lacks() -> None:
    study = study_of(ALLOCATOR, workload=Workload(("no-such-program", "{allocator}")))
    with pytest.raises(UnusableInput) as raised:
        grid(study)
    assert "--shell" not in str(raised.value)
