"""Only the values of variables that a command or a line of a shell sets are replaced."""

from __future__ import annotations

import shlex
import subprocess

import pytest

from equipoise.analysis.assignments import (
    replace_command_line_values,
    replace_command_values,
    replace_values,
)
from equipoise.design.command_line import shell_line_with_placeholders

CANARY = "s3cr3t-canary"


def dollar(name: str, value: str) -> str:
    return f"${name}"


@pytest.mark.parametrize(
    ("line", "shown"),
    [
        ("TOKEN=s3cr3t-canary make -j2", 'TOKEN="$TOKEN" make -j2'),
        ("export A='s3cr3t-canary x' B=1; curl", 'export A="$A" B="$B"; curl'),
        ('export "TOKEN=s3cr3t-canary" && x', 'export TOKEN="$TOKEN" && x'),
        ("env -u OLD TOKEN=s3cr3t-canary x", 'env -u OLD TOKEN="$TOKEN" x'),
        ("nice -n 5 env TOKEN=s3cr3t-canary x", 'nice -n 5 env TOKEN="$TOKEN" x'),
        ("sudo -u me TOKEN=s3cr3t-canary x", 'sudo -u me TOKEN="$TOKEN" x'),
        (">log TOKEN=s3cr3t-canary x 2>&1", '>log TOKEN="$TOKEN" x 2>&1'),
        ("cd x && (TOKEN=s3cr3t-canary y)", 'cd x && (TOKEN="$TOKEN" y)'),
        ("if TOKEN=s3cr3t-canary x; then y; fi", 'if TOKEN="$TOKEN" x; then y; fi'),
        ("x | TOKEN=s3cr3t-canary y & z", 'x | TOKEN="$TOKEN" y & z'),
        ('x "$(TOKEN=s3cr3t-canary y)" $Z', 'x "$(TOKEN="$TOKEN" y)" $Z'),
        ("x `TOKEN=s3cr3t-canary y`", 'x `TOKEN="$TOKEN" y`'),
        ("TOKEN=$(echo s3cr3t-canary) x", 'TOKEN="$TOKEN" x'),
        ("TOKEN=(s3cr3t-canary b) x", 'TOKEN="$TOKEN" x'),
        ("TOKEN+=s3cr3t-canary x", 'TOKEN+="$TOKEN" x'),
        ("TOKEN=a\\ s3cr3t-canary x", 'TOKEN="$TOKEN" x'),
        ("TOKEN=$'\\x41s3cr3t-canary' x", 'TOKEN="$TOKEN" x'),
        ("TOKEN='s3cr3t-canary", 'TOKEN="$TOKEN"'),
        ("x # TOKEN=s3cr3t-canary", 'x # TOKEN="$TOKEN"'),
        ("cat <<E\nTOKEN=s3cr3t-canary\nE", 'cat <<E\nTOKEN="$TOKEN"\nE'),
        ("sh -ec 'TOKEN=s3cr3t-canary x'", "sh -ec 'TOKEN=\"$TOKEN\" x'"),
        ("trap 'TOKEN=s3cr3t-canary x' EXIT", "trap 'TOKEN=\"$TOKEN\" x' EXIT"),
        ("TOKEN='$s3cr3t-canary' x", 'TOKEN="$TOKEN" x'),
    ],
)
def test_a_value_is_replaced_wherever_a_line_sets_a_variable(line: str, shown: str) -> None:
    assert replace_values(line, dollar) == shown
    assert CANARY not in shown


@pytest.mark.parametrize(
    "line",
    [
        "make CFLAGS=-O3 && dd if=/a of=/b bs=1M",
        "grep -q A=1 file; echo B=2",
        'TOKEN=$OTHER x; export A="${B}"',
        "TOKEN= x",
        "echo 'it is TOKEN=1'",
        "",
        "for i in 1 2; do x; done",
    ],
)
def test_a_word_that_sets_no_value_is_unchanged(line: str) -> None:
    assert replace_values(line, dollar) == line


def test_a_shell_runs_the_line_with_the_variables_that_it_names() -> None:
    line = 'A=\'it is; a $b\' sh -c \'printf %s "$A"\'; export C="x  y"; printf %s "$C"'
    shown = replace_values(line, dollar)
    assert "it is" not in shown
    processes = [
        subprocess.run(["/bin/sh", "-c", script], env=set_here, capture_output=True, check=True)
        for script, set_here in ((line, {}), (shown, {"A": "it is; a $b", "C": "x  y"}))
    ]
    assert processes[0].stdout == processes[1].stdout == b"it is; a $bx  y"


@pytest.mark.parametrize(
    ("command", "shown"),
    [
        (
            "/usr/bin/env -i TOKEN=s3cr3t-canary A=2 x B=3",
            "/usr/bin/env -i TOKEN=$TOKEN A=$A x B=3",
        ),
        ("/bin/sh -c 'TOKEN=s3cr3t-canary x'", "/bin/sh -c 'TOKEN=\"$TOKEN\" x'"),
        ("taskset 1 env TOKEN=s3cr3t-canary x", "taskset 1 env TOKEN=$TOKEN x"),
        ("x TOKEN=1", "x TOKEN=1"),
    ],
)
def test_a_command_without_a_shell_keeps_all_but_the_values(command: str, shown: str) -> None:
    words = replace_command_values(shlex.split(command), dollar)
    assert words == tuple(shlex.split(shown))


@pytest.mark.parametrize(
    ("line", "shown"),
    [
        (
            "equipoise gate --build 'TOKEN=s3cr3t-canary make' --seed 3 -- ./x 'a b'",
            "equipoise gate --build 'TOKEN=\"$TOKEN\" make' --seed 3 -- ./x 'a b'",
        ),
        (
            "equipoise gate --seed 3 -- env TOKEN=s3cr3t-canary ./x",
            'equipoise gate --seed 3 -- env "TOKEN=$TOKEN" ./x',
        ),
        (
            "equipoise gate --bench 'one=env TOKEN=s3cr3t-canary ./x' --seed 3",
            "equipoise gate --bench \"one=env 'TOKEN=$TOKEN' ./x\" --seed 3",
        ),
        ("equipoise gate --seed 3 -- ./x", "equipoise gate --seed 3 -- ./x"),
    ],
)
def test_the_line_of_a_gate_names_the_variables_of_its_build_and_its_commands(
    line: str, shown: str
) -> None:
    words = replace_command_line_values(shlex.split(line), dollar)
    assert shell_line_with_placeholders(words) == shown


@pytest.mark.parametrize("sign", ["$(", "`", "${", '"$(', "x=("])
def test_a_line_that_no_shell_takes_is_read_to_its_end(sign: str) -> None:
    line = sign * 5_000
    assert replace_values(line, lambda name, value: None) == line
