"""Commands become conditions; they are split as a POSIX shell splits them."""

from __future__ import annotations

import shutil
import stat
import sys
from pathlib import Path

import msgspec.structs
import pytest

from equipoise.design.commands import (
    CompareOptions,
    conditions_of,
    contrasts_of,
    parameter_list,
    parameter_scan,
    repeated_setup,
)
from equipoise.model.errors import UnusableInput
from equipoise.model.plan import Condition, Contrast, Hooks

NOWHERE = Path("/nonexistent")
TRUE = shutil.which("true")
ECHO = shutil.which("echo")


def conditions(*commands: str, **asked: object) -> tuple[Condition, ...]:
    return conditions_of(
        msgspec.structs.replace(CompareOptions(commands=commands), **asked),
        NOWHERE,
    )


def test_a_command_is_split_as_a_shell_splits_words() -> None:
    first, second = conditions("echo 'a b' c\\ d \"$HOME\" ; x", "true", shell="none")
    assert first.command == (ECHO, "a b", "c d", "$HOME", ";", "x")
    assert second.command == (TRUE,)


def test_a_condition_is_named_by_its_command_and_a_duplicate_is_numbered() -> None:
    assert names_of("true") == ["true"]
    assert names_of("true", "true", "true") == ["true", "true (2)", "true (3)"]


def test_names_are_taken_in_order_and_the_rest_keep_their_commands() -> None:
    assert names_of("true", "echo", names=("old",)) == ["old", "echo"]


@pytest.mark.parametrize(
    ("commands", "options", "message"),
    [
        ((), {}, "compare needs a command"),
        (("true", ""), {}, "empty"),
        (("true", "   "), {}, "empty"),
        (("true", "''"), {}, "empty"),
        (("true", "frobnicate --fast"), {}, "no program 'frobnicate'"),
        (("true", "/tmp"), {}, "is a folder"),
        (("true", "echo"), {"names": ("a", "b", "c")}, "3 names for 2 commands"),
        (("true", "echo"), {"environments": ("1",)}, "WHICH:KEY=VALUE"),
        (("true", "echo"), {"environments": ("1:A",)}, "WHICH:KEY=VALUE"),
        (("true", "echo"), {"environments": (":A=1",)}, "WHICH:KEY=VALUE"),
        (("true", "echo"), {"environments": ("1:=1",)}, "WHICH:KEY=VALUE"),
        (("true", "echo"), {"environments": ("a b=1",)}, "WHICH:KEY=VALUE"),
        (("true", "echo", "pwd"), {"environments": ("A=1", "A=2")}, "env is given 2 times for 3"),
        (("true",), {"environments": ("A=a b",)}, "'b' is not an assignment"),
        (("true", "echo", "pwd"), {"conclude": ("a", "b")}, "conclude is given 2 times for 3"),
        (("true", "echo"), {"parameters": {"n": ("1",)}}, r"mentions the parameter \{n\}"),
    ],
)
def test_commands_that_cannot_be_used_are_refused(
    commands: tuple[str, ...], options: dict[str, object], message: str
) -> None:
    with pytest.raises(UnusableInput, match=message):
        conditions(*commands, **options)


def test_an_open_quote_is_named() -> None:
    with pytest.raises(UnusableInput, match="no closing quotation") as caught:
        conditions("true", "echo 'oops")
    assert "close the quote" in str(caught.value.hint)


def test_a_file_that_cannot_be_executed_gets_its_chmod(tmp_path: Path) -> None:
    script = tmp_path / "tool.sh"
    script.write_text("#!/bin/sh\n", encoding="ascii")
    with pytest.raises(UnusableInput, match="cannot be executed") as caught:
        conditions("true", str(script))
    assert caught.value.hint == f"chmod +x {script}"


def test_a_program_is_found_on_the_path_of_its_condition(tmp_path: Path) -> None:
    program = tmp_path / "mine"
    program.write_text("#!/bin/sh\n", encoding="ascii")
    program.chmod(program.stat().st_mode | stat.S_IXUSR)
    found = conditions("true", "mine", environments=(f"2:PATH={tmp_path}",))
    assert found[1].command == (str(program),)


def test_the_packages_own_programs_come_first(tmp_path: Path) -> None:
    own = tmp_path / "equipoise-workload"
    own.write_bytes(b"")
    compared = conditions_of(
        CompareOptions(commands=("equipoise-workload malloc", "true")), tmp_path
    )
    assert compared[0].command == (str(own), "malloc")


def test_the_environment_of_one_condition_is_set_by_position_or_name() -> None:
    compared = conditions("true", "echo a:b", environments=("1:A=1", "echo a:b:B=x=y", "2:C="))
    assert compared[0].environment == {"A": "1"}
    assert compared[1].environment == {"B": "x=y", "C": ""}


@pytest.mark.parametrize("which", ["0", "3", "-1", "nobody"])
def test_an_unknown_condition_is_named_with_those_that_exist(which: str) -> None:
    with pytest.raises(UnusableInput, match="names no condition") as caught:
        conditions("true", "echo", environments=(f"{which}:A=1",))
    assert "1 = true, 2 = echo" in str(caught.value.hint)


def test_parameters_fill_the_braces_and_become_levels() -> None:
    compared = conditions("echo {n} {m}", parameters={"n": ("1", "2"), "m": ("x", "y")})
    assert [" ".join(one.command[1:]) for one in compared] == ["1 x", "1 y", "2 x", "2 y"]
    assert compared[1].levels == {"n": "1", "m": "y"}


def test_a_command_without_the_parameter_is_one_condition() -> None:
    found = names_of("true", "echo {n}", parameters={"n": ("1", "2")})
    assert found == ["true", "echo, n=1", "echo, n=2"]


def names_of(*commands: str, **asked: object) -> list[str]:
    return [condition.name for condition in conditions(*commands, **asked)]


def contrasts(*commands: str, **asked: object) -> tuple[Contrast, ...] | None:
    options = msgspec.structs.replace(CompareOptions(commands=commands), **asked)
    return contrasts_of(options, conditions_of(options, NOWHERE))


def test_several_commands_are_compared_at_each_value_and_named_by_their_programs() -> None:
    values = {"n": ("5", "9")}
    compared = conditions("echo {n}", "true -x {n}", parameters=values)
    names = [condition.name for condition in compared]
    assert names == ["echo, n=5", "echo, n=9", "true, n=5", "true, n=9"]
    assert compared[3].levels == {"command": "true", "n": "9"}
    assert contrasts("echo {n}", "true -x {n}", parameters=values) == (
        Contrast(0, 2, "command", {"n": "5"}),
        Contrast(1, 3, "command", {"n": "9"}),
    )


def test_a_first_command_without_the_parameter_is_the_baseline_at_each_value() -> None:
    found = contrasts("true", "echo {n}", parameters={"n": ("5", "9")})
    assert found is not None
    assert [(contrast.baseline, contrast.candidate) for contrast in found] == [(0, 1), (0, 2)]
    # In the opposite order, the second command has no value.
    assert contrasts("echo {n}", "true", parameters={"n": ("5", "9")}) == (
        Contrast(0, 2, "command", {}),
    )


def test_a_command_without_the_parameter_leaves_the_others_paired_at_their_value() -> None:
    found = contrasts("true {n}", "pwd", "echo {n}", parameters={"n": ("1", "2")})
    assert found == (
        Contrast(0, 2, "command", {}),
        Contrast(0, 3, "command", {"n": "1"}),
        Contrast(1, 4, "command", {"n": "2"}),
    )


def test_values_of_one_command_are_compared_with_the_first_of_them() -> None:
    values = {"n": ("5", "9")}
    assert contrasts("echo {n}", parameters=values) is None
    levels = [condition.levels["n"] for condition in conditions("echo {n}", parameters=values)]
    assert levels == ["5", "9"]


@pytest.mark.parametrize(
    ("names", "found"),
    [
        (("sm", "lg"), ["sm, n=5", "sm, n=9", "lg, n=5", "lg, n=9"]),
        (("sm",), ["sm, n=5", "sm, n=9", "echo b 5", "echo b 9"]),
        (("{n} small", "lg"), ["5 small", "9 small", "lg, n=5", "lg, n=9"]),
        (("a", "b", "c", "d"), ["a", "b", "c", "d"]),
        # Commands of the same program are distinguished by the complete commands.
        ((), ["echo a 5", "echo a 9", "echo b 5", "echo b 9"]),
    ],
    ids=lambda value: " ".join(value) or "none",
)
def test_a_name_applies_to_all_values_of_a_command(
    names: tuple[str, ...], found: list[str]
) -> None:
    values = {"n": ("5", "9")}
    assert names_of("echo a {n}", "echo b {n}", parameters=values, names=names) == found


@pytest.mark.parametrize("pair", ["1", "1:1", "0:1", "1:3", "a:b", "1:2:3", "-1:2"])
def test_an_invalid_pair_is_refused(pair: str) -> None:
    with pytest.raises(UnusableInput, match=f'pair="{pair}" does not name two of the 2 conditions'):
        contrasts("true", "echo", pairs=(pair,))


def test_hyperfine_s_environments_are_for_all_or_for_each_and_hold_parameters() -> None:
    values = {"n": ("5", "9")}
    shared = conditions("true", parameters=values, environments=("A={n} B='x y:z'",))
    assert [c.environment for c in shared] == [{"A": "5", "B": "x y:z"}, {"A": "9", "B": "x y:z"}]
    assert [c.name for c in shared] == ["true, n=5", "true, n=9"]
    each = conditions("true", "echo", environments=("A=1", ""))
    assert [c.environment for c in each] == [{"A": "1"}, {}]


def test_a_setup_that_alone_mentions_a_parameter_runs_before_each_trial() -> None:
    values = {"branch": ("main", "fast")}
    switch = ("git switch {branch}",)
    options = CompareOptions(commands=("true",), parameters=values, setup=switch)
    assert repeated_setup(options) == "branch"
    compared = conditions("true", parameters=values, setup=switch, prepare=("sync",))
    assert compared[1].hooks == Hooks(prepare="(git switch fast\n) && (sync\n)")
    assert compared[1].name == "true, branch=fast"
    mentioned = msgspec.structs.replace(options, commands=("echo {branch}",))
    assert repeated_setup(mentioned) is None
    assert conditions("echo {branch}", parameters=values, setup=switch)[1].hooks == Hooks(
        setup="git switch fast"
    )


def test_hooks_apply_to_all_commands_or_to_one_each() -> None:
    shared = conditions("true", "echo", prepare=("sync",))
    assert [c.hooks for c in shared] == [Hooks(prepare="sync")] * 2
    each = conditions("true", "echo", setup=("s1", "s2"), cleanup=("c",))
    assert [c.hooks.setup for c in each] == ["s1", "s2"]


def test_hooks_see_the_parameters() -> None:
    compared = conditions("echo {n}", parameters={"n": ("1", "2")}, prepare=("make N={n}",))
    assert [c.hooks.prepare for c in compared] == ["make N=1", "make N=2"]


def test_a_shell_is_used_only_when_requested() -> None:
    compared = conditions("true | cat", "true && true", shell="/bin/sh -e")
    assert compared[0].command == ("/bin/sh", "-e", "-c", "true | cat")


def test_a_command_given_as_words_is_not_split() -> None:
    compared = conditions_of(
        CompareOptions(commands=((sys.executable, "-c", "print('a b')"), "true")), NOWHERE
    )
    assert compared[0].command[1:] == ("-c", "print('a b')")


def test_a_parameter_list_is_split_at_commas_that_are_not_escaped() -> None:
    assert parameter_list("a,b\\,c,") == ("a", "b,c", "")


def test_a_parameter_scan_counts_in_decimals() -> None:
    assert parameter_scan("0.1", "0.4", "0.1") == ("0.1", "0.2", "0.3", "0.4")
    assert parameter_scan("1", "3", None) == ("1", "2", "3")


@pytest.mark.parametrize(
    ("low", "high", "step", "words"),
    [
        ("x", "3", None, "is not a number"),
        ("3", "1", None, "above its end"),
        ("1", "3", "0", "above zero"),
        ("1", "3", "-1", "above zero"),
        ("1", "inf", None, "above zero"),
        ("1", "1000000", None, "makes 1000000 values"),
    ],
)
def test_a_scan_that_makes_no_sense_is_refused(
    low: str, high: str, step: str | None, words: str
) -> None:
    with pytest.raises(UnusableInput, match=words):
        parameter_scan(low, high, step)


def test_the_program_of_every_layout_is_looked_for(tmp_path: Path) -> None:
    for layout in (1, 2, 3):
        program = tmp_path / f"layout-{layout}"
        program.write_text("#!/bin/sh\n")
        program.chmod(0o755)
    name = f"{tmp_path}/layout-{{layout}}"
    (shared, _) = conditions(f"{name} --seed {{layout}}", "true", layouts=3)
    assert shared.command == (name, "--seed", "{layout}")
    assert shared.command_in(2) == (f"{tmp_path}/layout-2", "--seed", "2")
    with pytest.raises(UnusableInput, match="layout-4"):
        conditions(name, "true", layouts=4)


def test_without_layouts_the_word_in_braces_is_a_word_like_others() -> None:
    (shared, _) = conditions("echo {layout}", "true")
    assert shared.command_in(None) == (ECHO, "{layout}")
