"""Settings that two conditions declare differently."""

from __future__ import annotations

from msgspec.structs import replace

from equipoise.model.plan import Condition, Hooks, Process, Server
from equipoise.why.differences.changes import Setting
from equipoise.why.differences.compare import different_settings

PLAIN = Condition("plain", ("sort", "--parallel=2", "words"))


def test_equal_conditions_have_no_setting() -> None:
    assert different_settings((PLAIN, replace(PLAIN, name="other"))) == ()


def test_environment_preload_and_library_path_are_named() -> None:
    other = replace(
        PLAIN, environment={"LANG": "C", "LD_PRELOAD": "a.so", "LD_LIBRARY_PATH": "/blas"}
    )
    assert different_settings((replace(PLAIN, environment={"LANG": "de"}), other)) == (
        Setting("environment LANG", "de", "C"),
        Setting("preload", None, "a.so"),
        Setting("library path", None, "/blas"),
    )


def test_settings_of_the_process_are_named() -> None:
    other = replace(PLAIN, process=Process(cpus=(0, 1), huge_pages=False, random_addresses=True))
    assert different_settings((PLAIN, other)) == (
        Setting("cpus", None, "0,1"),
        Setting("huge pages", None, "off"),
        Setting("random addresses", None, "on"),
    )


def test_inserted_argument_is_one_setting() -> None:
    other = replace(PLAIN, command=("sort", "--stable", "--parallel=2", "words"))
    assert different_settings((PLAIN, other)) == (Setting("argument 1", None, "--stable"),)
    assert different_settings((other, PLAIN)) == (Setting("argument 1", "--stable", None),)


def test_another_program_and_another_argument_are_two() -> None:
    other = replace(PLAIN, command=("/opt/sort", "--parallel=1", "words"))
    assert different_settings((PLAIN, other)) == (
        Setting("program", "sort", "/opt/sort"),
        Setting("argument 1", "--parallel=2", "--parallel=1"),
    )


def test_servers_are_compared_like_clients() -> None:
    server = Server(("mariadbd", "--port", "{port}"))
    with_server = replace(PLAIN, server=server)
    other = replace(
        PLAIN, server=replace(server, environment={"LD_PRELOAD": "jemalloc.so"}, start=("mysqld",))
    )
    assert different_settings((with_server, other)) == (
        Setting("server program", "mariadbd", "mysqld"),
        Setting("server argument 1", "--port", None),
        Setting("server argument 2", "{port}", None),
        Setting("server preload", None, "jemalloc.so"),
    )
    assert different_settings((PLAIN, with_server)) == (
        Setting("server", None, "mariadbd --port {port}"),
    )


def test_hook_before_each_trial_is_a_setting() -> None:
    cold = replace(PLAIN, hooks=Hooks(prepare="sync"))
    assert different_settings((PLAIN, cold)) == (Setting("before each trial", None, "sync"),)
