"""A value that somebody gives a variable is in no form that can be sent, unless it is asked for.

One ledger, to which a secret came by every door, and every form that is written of it.
"""

from __future__ import annotations

import os
import shlex
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import click
import polars
import pytest

from equipoise import api
from equipoise.analysis.display import records_for_display
from equipoise.cli import export, report, show
from equipoise.cli.observe import read_log
from equipoise.cli.results import name_in_ledger
from equipoise.design.command_line import command_of_plan
from equipoise.kinds.gate.terms import GatePlan
from equipoise.ledger import open_for_reading, open_for_writing
from equipoise.model.plan import Condition, Contrast, Hooks, Plan, Server
from equipoise.model.record import CampaignWarning, Draw, RunRecord
from equipoise.model.revisions import BENCHMARK, Revision
from equipoise.report.json_document import decode
from equipoise.why.gap import choose_gap, gap_with_public_names
from packages.equipoise.tests.cli.conftest import Equipoise, plan_from
from packages.equipoise.tests.plans import plan_of, trial_of
from packages.equipoise.tests.programs import finished

CANARY = "s3cr3t-canary"
KNOWN = "known-c4nary"
"""The value of a tuning variable, which is shown."""

Forms = Mapping[str, bytes]
FORMS = (
    *("report.html", "report.md", "report.tex", "report.csv"),
    *("export.hyperfine", "export.csv", "export.parquet", "export.json", "export.bmf"),
    *("export.markdown", "export.latex"),
    *("show.json", "show.export_json", "show.export_csv", "show.export_markdown"),
    *("screen", "notebook", "frame"),
    *("document.html", "document.md"),
)
GATE_FORMS = ("report.html", "report.md", "report.tex", "show.json")


def doors() -> Plan:
    """A plan to which the secret came by ``--env``, hooks, a server, a command and names."""
    server = Server(
        ("/bin/server",),
        {"SERVER_TOKEN": CANARY},
        prepare=("/usr/bin/env", f"TOKEN={CANARY}", "prepare"),
    )
    conditions = (
        Condition(
            f"env TOKEN={CANARY} a",
            ("/usr/bin/env", f"TOKEN={CANARY}", "a"),
            environment={"MALLOC_ARENA_MAX": KNOWN, "TOKEN": CANARY},
            hooks=Hooks(
                setup=f"export KEY={CANARY}; start",
                prepare=f"KEY={CANARY} prepare",
                conclude=f"env KEY={CANARY} conclude",
                cleanup=f"sh -c 'KEY={CANARY} cleanup'",
            ),
        ),
        Condition(
            f"b with {CANARY}",
            ("/bin/b",),
            levels={"token": CANARY},
            environment={"TOKEN": CANARY, "LC_TOKEN": CANARY},
            server=server,
        ),
    )
    words = ("--env", f"1:MALLOC_ARENA_MAX={KNOWN}", "--env", f"1:TOKEN={CANARY}")
    hooks = ("--setup", f"export KEY={CANARY}; start")
    changes = {
        "conditions": conditions,
        "command_line": ("equipoise", "compare", *words, *hooks, f"env TOKEN={CANARY} a", "b"),
    }
    return Plan(**{**fields_of(plan_of()), **changes})


def gate() -> Plan:
    """A gate whose build and whose benchmark were given the secret."""
    revision = Revision("main", "1" * 40)
    words = ("--build", f"TOKEN={CANARY} make", "--", "env", f"PASSWORD={CANARY}", "./bench")
    command = ("/usr/bin/env", f"PASSWORD={CANARY} it's", "./bench")
    benchmark = {BENCHMARK: shlex.join(("env", *command[1:]))}
    changes = {
        "study": "gate",
        "conditions": tuple(Condition(name, command, levels=benchmark) for name in ("old", "new")),
        "chosen_contrasts": (Contrast(0, 1),),
        "command_line": ("equipoise", "gate", *words),
        "terms": GatePlan(
            *(revision, revision, ("wall_s",)),
            bisect_argvs={benchmark[BENCHMARK]: ("equipoise", "bisect", *words)},
        ),
    }
    return Plan(**{**fields_of(plan_of()), **changes})


def fields_of(plan: Plan) -> dict[str, Any]:
    return {name: getattr(plan, name) for name in Plan.__struct_fields__}


ENVIRONMENT = {
    "kernel": "6.18",
    "variables": {"LC_ALL": KNOWN},
    "mapped": {f"env TOKEN={CANARY} a": {"program": "/bin/a"}},
}


def record(path: Path, plan: Plan) -> None:
    with open_for_writing(path, durable=False) as ledger:
        run_id = ledger.begin_run(plan, ENVIRONMENT, 1.7e9)
        for block in range(1, 8):
            draw = Draw("measured", block, (0, 1), 0)
            ledger.record_draw(run_id, draw)
            for place in (0, 1):
                ledger.record_trial(run_id, trial_of(draw, place, 0.01 + (block + place) / 1000))
        ledger.record_warning(run_id, CampaignWarning("noise", f"b with {CANARY} is noisy", "wait"))
        ledger.end_segment(run_id, 1, 1.7e9 + 1, "blocks")


def call(command: click.Command, path: Path, *arguments: str) -> None:
    words = [*arguments, "--ledger", str(path)]
    assert command.main(words, standalone_mode=False) == 0


def written(path: Path, folder: Path, capture: Any, *options: str) -> Forms:
    """Every form of the last campaign of a ledger."""
    for ending in ("html", "md", "tex", "csv"):
        call(report.command, path, "-o", str(folder / f"report.{ending}"), *options)
    for form in ("hyperfine", "csv", "parquet", "json", "bmf", "markdown", "latex"):
        output = str(folder / f"export.{form}")
        call(export.command, path, "--format", form, "-o", output, *options)
    exports = ("json", "export-json", "export-csv", "export-markdown")
    capture.readouterr()
    files = [
        word
        for export in exports
        for word in (f"--{export}", str(folder / f"show.{export.replace('-', '_')}"))
    ]
    call(show.command, path, "last", *files, *options)
    (folder / "screen").write_text(capture.readouterr().out)
    result = api.show(ledger=path, show_env="--show-env" in options)
    (folder / "notebook").write_text(result._repr_html_())
    (folder / "frame").write_text(repr(result.to_frame().to_dict()))
    for ending in ("html", "md"):
        output = str(folder / f"document.{ending}")
        call(report.command, path, str(folder / "show.json"), "-o", output, *options)
    table = polars.read_parquet(folder / "export.parquet")
    (folder / "export.parquet").write_text(repr(table.to_dict(as_series=False)))
    return {file.name: file.read_bytes() for file in folder.iterdir()}


@pytest.fixture(scope="module")
def ledger(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("doors") / "ledger.db"
    record(path, doors())
    return path


@pytest.fixture(scope="module")
def forms(ledger: Path, tmp_path_factory: pytest.TempPathFactory) -> Callable[..., Forms]:
    """The forms of that ledger, made once for each choice of options."""
    made: dict[tuple[str, ...], Forms] = {}

    def get(capture: Any, *options: str) -> Forms:
        if options not in made:
            made[options] = written(ledger, tmp_path_factory.mktemp("forms"), capture, *options)
        return made[options]

    return get


@pytest.mark.parametrize("form", FORMS)
def test_no_form_holds_the_value_of_a_variable(
    forms: Callable[..., Forms], form: str, capfd: pytest.CaptureFixture[str]
) -> None:
    content = forms(capfd)[form]
    assert content
    assert CANARY.encode() not in content


@pytest.mark.parametrize("form", FORMS)
def test_every_form_shows_the_values_on_demand(
    forms: Callable[..., Forms], form: str, capfd: pytest.CaptureFixture[str]
) -> None:
    assert CANARY.encode() in forms(capfd, "--show-env")[form]


@pytest.mark.parametrize("form", ["report.html", "report.md", "report.tex", "show.json"])
def test_the_value_of_a_tuning_variable_is_shown(
    forms: Callable[..., Forms], form: str, capfd: pytest.CaptureFixture[str]
) -> None:
    assert KNOWN.encode() in forms(capfd)[form]


def test_the_document_holds_to_its_schema_and_is_the_same_twice(
    forms: Callable[..., Forms], ledger: Path, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    content = forms(capfd)["show.json"]
    assert decode(content, "show.json").conditions[0].command[1] == "TOKEN=$TOKEN"
    call(show.command, ledger, "last", "--quiet", "--json", str(tmp_path / "again.json"))
    assert (tmp_path / "again.json").read_bytes() == content


def test_a_document_without_values_can_be_held_against_the_campaign(
    forms: Callable[..., Forms], ledger: Path, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    there, here = tmp_path / "there.json", tmp_path / "here.json"
    there.write_bytes(forms(capfd)["show.json"])
    options = ("--quiet", "--against", str(there), "--json", str(here))
    call(show.command, ledger, "last", *options)
    held = decode(here.read_bytes(), "here.json").against
    assert held is not None
    assert held.differences == ()


@pytest.fixture(scope="module")
def two_campaigns(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("two") / "ledger.db"
    for _ in range(2):
        record(path, doors())
    return path


@pytest.mark.parametrize("is_pooled", [True, False])
def test_several_campaigns_together_hold_no_value_either(
    two_campaigns: Path, tmp_path: Path, is_pooled: bool
) -> None:
    with open_for_reading(two_campaigns) as store:
        runs = [run.id for run in store.runs()]
    words = [runs[0], "--pool"] if is_pooled else runs
    document = tmp_path / "together.json"
    call(show.command, two_campaigns, *words, "--quiet", "--json", str(document))
    assert CANARY not in document.read_text(encoding="utf-8")
    call(show.command, two_campaigns, *words, "--quiet", "--show-env", "--json", str(document))
    assert CANARY in document.read_text(encoding="utf-8")


def test_the_trials_that_observe_reads_have_no_values_in_their_names(two_campaigns: Path) -> None:
    def columns(*, show_env: bool) -> str:
        named = str(two_campaigns)
        return repr(read_log(named, two_campaigns, "condition", show_env=show_env).columns)

    assert CANARY not in columns(show_env=False)
    assert CANARY in columns(show_env=True)


@pytest.mark.parametrize("form", GATE_FORMS)
def test_a_gate_s_forms_name_the_variables_of_its_build(
    gated: Mapping[str, str], form: str
) -> None:
    assert CANARY not in gated[form]
    assert "TOKEN" in gated[form]
    assert "PASSWORD" in gated[form]


@pytest.fixture(scope="module")
def gated(tmp_path_factory: pytest.TempPathFactory) -> Mapping[str, str]:
    folder = tmp_path_factory.mktemp("gate")
    path = folder / "ledger.db"
    record(path, gate())
    for name in GATE_FORMS[:-1]:
        call(report.command, path, "-o", str(folder / name))
    call(show.command, path, "last", "--quiet", "--json", str(folder / GATE_FORMS[-1]))
    return {name: (folder / name).read_text(encoding="utf-8") for name in GATE_FORMS}


def planned(plan: Plan) -> RunRecord:
    """The record of a campaign that has not begun."""
    return RunRecord("20260301-101500-ab12", plan, 1.7e9, (), (), (), ())


def test_the_line_that_repeats_a_campaign_takes_the_values_from_the_shell() -> None:
    """Whoever has the variables runs the very campaign."""
    value, other = 'it\'s; a "$b" `c`', "x  y"
    words = ["--seed", "5", "-n", "one", "-n", "two", "--env", f"1:TOKEN={value}"]
    words += ["--env", f"2:TOKEN={other}", "--env", "2:LANG=C"]
    plan = plan_from([*words, "env PLAIN=abc true", "false"])
    (found,) = records_for_display([planned(plan)], show_env=False)
    line = str(command_of_plan(found.plan))
    assert '--env "1:TOKEN=$TOKEN" --env "2:TOKEN=$TOKEN_2" --env 2:LANG=C' in line
    assert "abc" not in line
    command = line.partition(" && equipoise ")[2]
    set_here = {"TOKEN": value, "TOKEN_2": other, "PLAIN": "abc", "PATH": os.environ["PATH"]}
    spoken = finished(["/bin/sh", "-c", f"printf '%s\\0' {command}"], env=set_here, check=True)
    assert plan_from(spoken.stdout.split("\0")[1:-1]) == plan


def test_a_line_of_a_shell_takes_its_own_values_from_the_environment() -> None:
    words = ["--seed", "5", "--shell", "default", "--prepare", "KEY=abcd x", "A=efgh true", "false"]
    plan = plan_from(words)
    (found,) = records_for_display([planned(plan)], show_env=False)
    answer = shlex.split(str(command_of_plan(found.plan)))
    assert 'KEY="$KEY" x' in answer
    assert 'A="$A" true' in answer


def test_a_condition_is_found_by_its_name_and_by_the_name_on_the_page(ledger: Path) -> None:
    with open_for_reading(ledger) as store:
        found = store.read_run("last")
    recorded = f"env TOKEN={CANARY} a"
    assert name_in_ledger(found, recorded) == recorded
    assert name_in_ledger(found, 'env TOKEN="$TOKEN" a') == recorded
    assert name_in_ledger(found, "neither") == "neither"


def test_the_gap_that_why_explains_has_the_names_of_the_report(ledger: Path) -> None:
    with open_for_reading(ledger) as store:
        found = store.read_run("last")
    (shown,) = records_for_display((found,), show_env=False)
    gap = choose_gap(found)
    named = gap_with_public_names(gap, found, shown)
    assert CANARY in gap.comparison.summary
    assert CANARY not in named.comparison.summary
    assert named.comparison.ratio_ci == gap.comparison.ratio_ci
    assert gap_with_public_names(gap, found, found) is gap


def test_a_campaign_is_resumed_with_the_values_that_it_had(equipoise: Equipoise) -> None:
    # A command says what it says, so the value that it expects comes by another variable.
    check = 'test "$TOKEN" = "$EXPECTED"'
    options = ["--warmup", "0", "--min-blocks", "1", "--quiet", "--shell", "default"]
    begun = equipoise(
        *("compare", *options, "--blocks", "1", "--env", f"1:TOKEN={CANARY}"),
        *("--env", f"2:TOKEN={CANARY}", "--json", "-", check, f"{check};"),
        environment={"EXPECTED": CANARY},
    )
    assert begun.status == 0, begun.err
    assert CANARY not in begun.out
    page = equipoise.folder / "page.md"
    more = ("--blocks", "2", "--quiet", "--report", str(page))
    resumed = equipoise("resume", "last", *more, environment={"EXPECTED": CANARY})
    assert resumed.status == 0, resumed.err
    assert '--env "1:TOKEN=$TOKEN"' in page.read_text(encoding="utf-8")
    assert CANARY not in page.read_text(encoding="utf-8")
    wrong = equipoise("resume", "last", "--blocks", "3", environment={"EXPECTED": "another"})
    assert wrong.status == 3
