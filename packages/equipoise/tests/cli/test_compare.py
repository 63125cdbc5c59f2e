"""`equipoise compare` on real programs, through the command line."""

from __future__ import annotations

import csv
import json
import os
import subprocess
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest

from packages.equipoise.tests.cli.conftest import Equipoise, compared

Script = Callable[[str, Sequence[str]], str]


def test_a_slower_program_is_called_slower(equipoise: Equipoise) -> None:
    document = compared(equipoise, "sleep 0.002", "sleep 0.05")
    comparison = document["comparisons"][0]
    assert comparison["verdict"] == "slower"
    assert comparison["ratio_ci"][0] > 1.0
    assert document["run"]["blocks"] >= 8
    assert document["control"] is None
    warm = [row for row in document["trials"] if row["phase"] == "warmup"]
    assert len(warm) == 2
    assert not any(row["analysed"] for row in warm)


def test_conditions_stand_in_the_order_of_the_plan_and_comparisons_in_that_of_candidates(
    equipoise: Equipoise,
) -> None:
    document = compared(
        equipoise, "sleep 0.03", "sleep 0.09", "sleep 0.003", "-n", "a", "-n", "b", "-n", "c"
    )
    assert [condition["name"] for condition in document["conditions"]] == ["a", "b", "c"]
    assert [comparison["candidate"] for comparison in document["comparisons"]] == ["b", "c"]
    assert [comparison["verdict"] for comparison in document["comparisons"]] == ["slower", "faster"]


def test_with_json_on_stdout_nothing_else_is_there(equipoise: Equipoise) -> None:
    answer = equipoise("compare", "true", "true", "--blocks", "2", "--json", "-")
    json.loads(answer.out)
    assert answer.err == ""


def test_in_a_pipe_progress_is_silent_and_the_screen_is_plain_text(equipoise: Equipoise) -> None:
    answer = equipoise("compare", "true", "sleep 0.05")
    assert answer.err == ""
    assert "slower: sleep 0.05 is slower than true" in answer.out
    assert "\x1b" not in answer.out


def test_quiet_prints_nothing(equipoise: Equipoise) -> None:
    answer = equipoise("compare", "true", "true", "--blocks", "2", "--quiet")
    assert (answer.out, answer.err) == ("", "")


def test_the_environment_of_one_condition_is_its_own(equipoise: Equipoise, script: Script) -> None:
    picky = script("picky", ['test "$WHO" = "$EXPECTED" || exit 9'])
    document = compared(
        equipoise,
        f"{picky} 1",
        f"{picky} 2",
        *("--env", "1:WHO=a", "--env", "1:EXPECTED=a"),
        *("--env", "2:WHO=b c", "--env", "2:EXPECTED=b c"),
        *("--blocks", "2"),
    )
    assert [condition["failures"] for condition in document["conditions"]] == [0, 0]


def test_the_size_of_the_environment_varies_from_block_to_block(
    equipoise: Equipoise, script: Script, tmp_path: Path
) -> None:
    sized = script("sized", [f'echo "${{#EQUIPOISE_PADDING}}" >> {tmp_path}/sizes'])
    compared(equipoise, sized, sized, "--blocks", "6", "--warmup", "0", "--min-effect", "0")
    sizes = (tmp_path / "sizes").read_text(encoding="ascii").split()
    assert len(sizes) == 12
    assert sizes[0::2] == sizes[1::2]
    assert len(set(sizes)) > 2


def test_a_workloads_own_metrics_are_kept(equipoise: Equipoise) -> None:
    document = compared(
        equipoise,
        "equipoise-workload malloc --count 100",
        "equipoise-workload malloc --count 200",
        *("--blocks", "2"),
    )
    assert document["conditions"][0]["metrics"]["ns_per_pair"]["median"] > 0
    assert "ns_per_pair" in document["trials"][0]["metrics"]


def test_input_output_and_hooks(equipoise: Equipoise, tmp_path: Path) -> None:
    (tmp_path / "words").write_text("b\na\n", encoding="ascii")
    document = compared(
        equipoise,
        "sort",
        "sort -r",
        *("--input", "words", "--output", "sorted", "--blocks", "2", "--warmup", "0"),
        *("--setup", "echo setup >> diary", "--cleanup", "echo cleanup >> diary"),
        *("--prepare", "echo prepare >> diary", "--conclude", "cat sorted >> diary"),
    )
    diary = (tmp_path / "diary").read_text(encoding="ascii").split()
    assert diary.count("setup") == diary.count("cleanup") == 2
    assert diary.count("prepare") == 4
    assert diary.count("a") == diary.count("b") == 4
    assert document["run"]["blocks"] == 2


def test_inherited_output_goes_to_the_callers_own(equipoise: Equipoise) -> None:
    answer = equipoise(
        "compare", "echo one", "echo two", "--output", "inherit", "--blocks", "1", "--quiet"
    )
    assert sorted(answer.out.split()) == ["one", "one", "two", "two"]


def test_a_shell_is_there_when_it_is_asked_for(equipoise: Equipoise) -> None:
    document = compared(equipoise, "true | true", "exit 0", "--shell", "default", "--blocks", "2")
    assert document["conditions"][0]["command"] == ["/bin/sh", "-c", "true | true"]


def test_failures_can_be_counted_like_others(equipoise: Equipoise) -> None:
    document = compared(equipoise, "true", "false", "--ignore-failure", "--blocks", "3")
    assert document["conditions"][1]["failures"] == 4
    assert document["conditions"][1]["trials"] == 3
    assert document["trials"][-1]["failure"] in (None, "exit status 1")


def test_washout_runs_are_kept_and_left_out(equipoise: Equipoise) -> None:
    document = compared(equipoise, "true", "true", "--washout", "--blocks", "3", "--warmup", "0")
    reasons = [row["left_out_because"] for row in document["trials"]]
    assert len(reasons) == 12
    assert sum(reason is None for reason in reasons) == 6
    assert document["conditions"][0]["trials"] == 3


def test_a_control_is_pooled_into_the_baseline_and_reported_apart(equipoise: Equipoise) -> None:
    document = compared(equipoise, "sleep 0.002", "sleep 0.02", "--control")
    assert [condition["name"] for condition in document["conditions"]] == [
        "sleep 0.002",
        "sleep 0.02",
    ]
    assert len(document["comparisons"]) == 1
    control = document["control"]
    assert control["condition"]["name"] == "sleep 0.002 (control)"
    assert control["condition"]["command"] == document["conditions"][0]["command"]
    assert control["comparison"]["candidate"] == "sleep 0.002 (control)"
    rows = {row["condition"] for row in document["trials"]}
    assert "sleep 0.002 (control)" in rows


def test_the_first_metric_decides_and_the_others_are_judged_beside_it(
    equipoise: Equipoise,
) -> None:
    document = compared(
        equipoise,
        "equipoise-workload malloc --count 50 --size 100000",
        "equipoise-workload malloc --count 50 --size 9000000 --touch all",
        *("--metrics", "minor_faults,max_rss_bytes,joules", "-n", "small", "-n", "large"),
    )
    assert [
        (comparison["metric"], comparison["verdict"]) for comparison in document["comparisons"]
    ] == [
        ("minor_faults", "slower"),
        ("max_rss_bytes", "slower"),
    ]
    assert "metric_unknown" in [warning["code"] for warning in document["warnings"]]


def test_a_metric_that_nobody_reports_cannot_decide(equipoise: Equipoise) -> None:
    answer = equipoise("compare", "true", "true", "--metrics", "joules")
    assert answer.status == 2
    assert "has no joules: the workload did not report it" in answer.err


def test_a_campaign_without_a_complete_block_is_shown_all_the_same(equipoise: Equipoise) -> None:
    assert equipoise("compare", "true", "false").status == 3
    answer = equipoise("show", "--verbose")
    assert answer.status == 0
    assert "no block is complete" in answer.out


def test_a_parameter_makes_a_condition_of_each_value(equipoise: Equipoise) -> None:
    document = compared(equipoise, "sleep 0.00{n}", "-L", "n", "1,2,3", "--blocks", "2")
    assert [condition["levels"] for condition in document["conditions"]] == [
        {"n": "1"},
        {"n": "2"},
        {"n": "3"},
    ]


def test_exports_are_in_hyperfines_forms(equipoise: Equipoise, tmp_path: Path) -> None:
    exports = ("--export-json", "h.json", "--export-csv", "h.csv", "--export-markdown", "h.md")
    assert equipoise("compare", "true", "true", "--blocks", "3", "--quiet", *exports).status == 0
    results = json.loads((tmp_path / "h.json").read_text(encoding="utf-8"))["results"]
    assert [len(result["times"]) for result in results] == [3, 3]
    with (tmp_path / "h.csv").open(encoding="utf-8", newline="") as file:
        assert [row["command"] for row in csv.DictReader(file)] == ["true", "true (2)"]
    assert (tmp_path / "h.md").read_text(encoding="utf-8").startswith("| Command |")


def test_the_ledger_is_where_it_was_asked_for(equipoise: Equipoise, tmp_path: Path) -> None:
    options = ("compare", "true", "true", "--blocks", "1", "--quiet")
    assert equipoise(*options, environment={"EQUIPOISE_LEDGER": "from-variable.db"}).status == 0
    assert (tmp_path / "from-variable.db").is_file()
    assert equipoise(*options, "--ledger", "from-option.db").status == 0
    assert (tmp_path / "from-option.db").is_file()
    assert not (tmp_path / ".equipoise").exists()


def test_show_lists_other_campaigns_of_the_same_commands(equipoise: Equipoise) -> None:
    for _ in range(2):
        assert equipoise("compare", "true", "true", "--blocks", "1", "--quiet").status == 0
    assert equipoise("compare", "true", "echo", "--blocks", "1", "--quiet").status == 0
    assert "1 other campaign" not in equipoise("show").out
    runs = [line.split()[0] for line in equipoise("list").out.splitlines()[3:]]
    assert len(runs) == 3
    assert "in this ledger: 1" in equipoise("show", runs[1]).out
    shown = equipoise("show", runs[1], "--verbose").out
    assert runs[0] in shown
    assert runs[2] not in shown


def test_a_name_with_markup_or_controls_stays_text(equipoise: Equipoise) -> None:
    hostile = "[red]x[/red] <script>"
    answer = equipoise("compare", "true", "true", "-n", hostile, "--blocks", "1")
    assert hostile in answer.out
    ringing = equipoise("compare", "true", "true", "-n", "bell\x07\x1b[31m", "--blocks", "1")
    assert "\x07" not in ringing.out
    assert "\x1b" not in ringing.out


def test_a_command_that_is_not_utf_8_is_run_and_shown(equipoise: Equipoise) -> None:
    answer = equipoise("compare", os.fsdecode(b"echo \xff"), "true", "--blocks", "1", "--json", "-")
    assert answer.status == 0


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_completion_is_a_script_of_the_shell(equipoise: Equipoise, shell: str) -> None:
    answer = equipoise("completion", shell)
    assert answer.status == 0
    assert "_EQUIPOISE_COMPLETE" in answer.out


def test_completion_completes_commands(equipoise_process: Equipoise) -> None:
    answer = equipoise_process(
        environment={
            "_EQUIPOISE_COMPLETE": "bash_complete",
            "COMP_WORDS": "equipoise com",
            "COMP_CWORD": "1",
        }
    )
    assert "compare" in answer.out
    assert "completion" in answer.out


def test_help_names_every_command(equipoise: Equipoise) -> None:
    answer = equipoise("--help")
    assert answer.status == 0
    for name in ("compare", "resume", "show", "list", "completion"):
        assert name in answer.out
        assert equipoise(name, "--help").status == 0


@pytest.fixture
def completed(equipoise_process: Equipoise) -> Callable[[str], list[str]]:
    """Return the words that bash completes at the end of a line."""

    def complete(line: str) -> list[str]:
        words = line.split(" ")
        answer = equipoise_process(
            environment={
                "_EQUIPOISE_COMPLETE": "bash_complete",
                "COMP_WORDS": line,
                "COMP_CWORD": str(len(words) - 1),
            }
        )
        assert (answer.status, answer.err) == (0, "")
        return answer.out.split()

    return complete


def test_runs_are_completed_from_the_ledger_the_latest_first(
    equipoise: Equipoise, completed: Callable[[str], list[str]]
) -> None:
    assert completed("equipoise show ") == []
    for _ in range(2):
        equipoise("compare", "true", "--blocks", "1", "--quiet", "--allow-concurrent")
    runs = [run["id"] for run in json.loads(equipoise("list", "--json", "-").out)]
    latest_first = [f"plain,{run}" for run in reversed(runs)]
    for command in ("show", "why", "resume", "export", "report", "observe"):
        assert completed(f"equipoise {command} ") == ["plain,last", *latest_first]
    assert completed(f"equipoise show last {runs[0]}") == [f"plain,{runs[0]}"]
    assert completed("equipoise report result.js") == ["file,result.js"]


def test_studies_files_and_revisions_are_completed(
    completed: Callable[[str], list[str]], tmp_path: Path
) -> None:
    assert completed("equipoise run alloc") == ["plain,allocators", "file,alloc"]
    assert completed("equipoise compare --report pa") == ["file,pa"]
    assert completed("equipoise import ") == ["file,"]
    assert completed("equipoise gate --baseline re") == []
    git = ("git", "-c", "user.name=a", "-c", "user.email=a@b")
    for step in (("init", "-q", "-b", "main"), ("commit", "-q", "--allow-empty", "-m", "one")):
        subprocess.run([*git, *step], cwd=tmp_path, check=True)
    subprocess.run([*git, "tag", "release-1"], cwd=tmp_path, check=True)
    for line in ("gate --baseline", "gate --candidate", "bisect --good", "history --from"):
        assert completed(f"equipoise {line} re") == ["plain,release-1"]
        assert set(completed(f"equipoise {line} ")) >= {"plain,HEAD", "plain,main"}


SECONDS = ("0.03", "0.01", "0.04", "0.05", "0.06", "0.07")


def test_the_fastest_of_six_is_the_first_sentence_everywhere(equipoise: Equipoise) -> None:
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
    assert [condition["name"] for condition in ranking["conditions"]][0] == "nap 0.01"
    before, _, rest = answer.out.partition(sentence)
    assert before == ""
    assert "\n5 comparisons: 1 faster, 4 slower" in rest
    assert "nap 0.07" in rest
    page = (equipoise.folder / "page.html").read_text(encoding="utf-8")
    assert sentence in page.partition("<h1")[2].partition("</h1>")[0]
