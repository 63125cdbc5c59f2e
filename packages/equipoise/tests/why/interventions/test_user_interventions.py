"""The user's own interventions."""

from __future__ import annotations

import shutil

import pytest

from equipoise.measure.installation import host_site
from equipoise.model.errors import UnusableInput
from equipoise.model.plan import Condition, Server
from equipoise.why.interventions.catalogue import user_command, user_variable
from packages.equipoise.tests.why.interventions.cases import CANDIDATE

NICE = shutil.which("nice")
SH = shutil.which("sh")


def test_variable_replaces_that_of_the_condition() -> None:
    tried = user_variable("decay:MALLOC_CONF=dirty_decay_ms:-1,a=b c")
    candidate = Condition("b", ("/bin/b",), environment={"MALLOC_CONF": "x", "A": "1"})
    altered = tried.alter(candidate)
    assert altered.environment == {"A": "1", "MALLOC_CONF": "dirty_decay_ms:-1,a=b c"}
    assert (tried.name, tried.causes) == ("decay", frozenset())
    assert tried.advice == "MALLOC_CONF='dirty_decay_ms:-1,a=b c' {command}"


def test_an_empty_value_is_a_value() -> None:
    assert user_variable("none:A=").alter(CANDIDATE).environment == {"A": ""}


@pytest.mark.parametrize("text", ["", "A=1", "name:", "name:A", ":A=1", "name:=1", " :A=1"])
def test_invalid_variable_is_refused_with_the_form(text: str) -> None:
    with pytest.raises(UnusableInput, match="is not of the form NAME:KEY=VALUE") as caught:
        user_variable(text)
    assert caught.value.hint is not None


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("nice -n 5", (NICE, "-n", "5", "/bin/b", "two", "three")),
        ("nice '{command}'", (NICE, "/bin/b", "two", "three")),
        ("nice {command} 'a b'", (NICE, "/bin/b", "two", "three", "a b")),
        ("sh -c '{command} | cat'", (SH, "-c", "/bin/b two three | cat")),
    ],
)
def test_command_is_a_prefix_or_a_wrapper(line: str, expected: tuple[str, ...]) -> None:
    assert user_command(f"own={line}", host_site()).alter(CANDIDATE).command == expected


def test_a_word_that_needs_quotes_is_quoted_for_a_shell() -> None:
    candidate = Condition("b", ("/bin/b", "a b"))
    altered = user_command("own=sh -c 'exec {command}'", host_site()).alter(candidate)
    assert altered.command[-1] == "exec /bin/b 'a b'"


def test_a_server_is_started_by_the_command() -> None:
    candidate = Condition("b", ("/bin/client",), server=Server(("/bin/server", "x")))
    altered = user_command("own=nice", host_site()).alter(candidate)
    assert altered.command == ("/bin/client",)
    assert altered.server is not None
    assert altered.server.start == (NICE, "/bin/server", "x")


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("nice", "is not of the form NAME=CMD"),
        ("=nice", "is not of the form NAME=CMD"),
        ("own= ", "is not of the form NAME=CMD"),
        ("own='nice", "cannot split"),
        ("own='' {command}", "the program of .* is empty"),
        ("own=no-such-program", "there is no program 'no-such-program'"),
        ("own=nice \0", "null byte"),
    ],
)
def test_invalid_command_is_refused_with_a_hint(text: str, problem: str) -> None:
    with pytest.raises(UnusableInput, match=problem) as caught:
        user_command(text, host_site())
    assert caught.value.hint is not None
