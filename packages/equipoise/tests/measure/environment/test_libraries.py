"""The loader of a command lists the libraries that it maps; the command does not run."""

from __future__ import annotations

import os
import shutil
import sys
from pathlib import Path

import pytest

from equipoise.measure.environment import Unknown, mapped_libraries
from equipoise.measure.environment.libraries import ignored_tunables

ENVIRONMENT = {"PATH": os.environ["PATH"]}
LS = str(shutil.which("ls"))


def script(folder: Path, name: str, text: str) -> str:
    path = folder / name
    path.write_text(text, encoding="utf-8")
    path.chmod(0o755)
    return str(path)


def test_a_program_is_found_on_its_path_and_its_libraries_are_real_files(tmp_path: Path) -> None:
    mapped = mapped_libraries(["ls"], ENVIRONMENT, str(tmp_path))
    assert mapped.program == LS
    assert mapped.libraries is not None
    assert any(name.startswith("libc.") for name in mapped.libraries)
    assert all(os.path.isfile(path) for path in mapped.libraries.values())
    assert mapped.problems == ()
    assert mapped.unknown_because is None


def test_the_command_does_not_run(tmp_path: Path) -> None:
    mapped = mapped_libraries(["touch", str(tmp_path / "made")], ENVIRONMENT, str(tmp_path))
    assert mapped.libraries
    assert list(tmp_path.iterdir()) == []


def test_a_preload_is_seen(tmp_path: Path) -> None:
    plain = mapped_libraries(["ls"], ENVIRONMENT, str(tmp_path))
    environment = {**ENVIRONMENT, "LD_PRELOAD": "libm.so.6"}
    mapped = mapped_libraries(["ls"], environment, str(tmp_path))
    assert plain.libraries is not None
    assert mapped.libraries is not None
    assert set(mapped.libraries) - set(plain.libraries) == {"libm.so.6"}


def test_a_preload_that_does_not_load_is_a_problem(tmp_path: Path) -> None:
    environment = {**ENVIRONMENT, "LD_PRELOAD": "/no/such.so"}
    mapped = mapped_libraries(["ls"], environment, str(tmp_path))
    assert mapped.libraries
    assert len(mapped.problems) == 1
    assert "/no/such.so" in mapped.problems[0]


def test_a_script_is_followed_to_its_interpreter(tmp_path: Path) -> None:
    path = script(tmp_path, "inner", f"#!{sys.executable} -u\nprint()\n")
    assert mapped_libraries([path], ENVIRONMENT, "/").program == sys.executable


def test_env_is_followed_to_the_program_that_it_starts(tmp_path: Path) -> None:
    path = script(tmp_path, "by-env", "#!/usr/bin/env ls\n")
    assert mapped_libraries([path], ENVIRONMENT, "/").program == LS
    preloaded = mapped_libraries(["env", "LD_PRELOAD=libm.so.6", "ls"], ENVIRONMENT, "/")
    assert preloaded.program == LS
    assert preloaded.libraries is not None
    assert "libm.so.6" in preloaded.libraries


def test_a_script_that_names_itself_ends(tmp_path: Path) -> None:
    path = script(tmp_path, "loop", f"#!{tmp_path}/loop\n")
    mapped = mapped_libraries([path], ENVIRONMENT, "/")
    assert mapped.libraries is None
    assert "more scripts in a row" in str(mapped.unknown_because)


def test_a_relative_program_is_in_the_working_folder(tmp_path: Path) -> None:
    shutil.copy(LS, tmp_path / "mine")
    mapped = mapped_libraries(["./mine"], ENVIRONMENT, str(tmp_path))
    assert mapped.program == f"{tmp_path}/./mine"
    assert mapped.libraries


@pytest.mark.parametrize(
    ("command", "changed", "reason"),
    [
        (["env", "-u", "HOME", "ls"], {}, "env '-u' is not followed"),
        (["l\0s"], {}, ""),
        (["ls"], {"A": "\0"}, ""),
        ([], {}, "there is no program"),
        (["no-such-program"], {}, "there is no program"),
        (["/no/such"], {}, "there is no program"),
        (["/"], {}, "there is no program"),
    ],
    ids=["env", "zero byte", "zero byte in a variable", "no word", "unknown", "absent", "folder"],
)
def test_a_command_that_is_not_followed_has_a_reason(
    command: list[str], changed: dict[str, str], reason: str
) -> None:
    mapped = mapped_libraries(command, {**ENVIRONMENT, **changed}, "/")
    assert mapped.libraries is None
    assert mapped.unknown_because
    assert reason in mapped.unknown_because
    assert mapped.program is None or "no program" not in reason


def test_a_program_in_another_form_is_reported(tmp_path: Path) -> None:
    path = script(tmp_path, "text", "echo no first line\n")
    mapped = mapped_libraries([path], ENVIRONMENT, "/")
    assert mapped.libraries is None
    assert mapped.unknown_because == f"{path} is not an ELF file"


def test_a_static_program_maps_nothing_and_takes_no_preload(tmp_path: Path) -> None:
    # An ELF header of 64 bits without segments.
    path = tmp_path / "static"
    header = b"\x7fELF\x02\x01\x01" + bytes(9) + bytes(48)
    path.write_bytes(header)
    path.chmod(0o755)
    mapped = mapped_libraries([str(path)], {**ENVIRONMENT, "LD_PRELOAD": "x.so"}, "/")
    assert mapped.libraries == {}
    assert mapped.problems == ("LD_PRELOAD does nothing here: the program is linked statically",)


def test_a_truncated_program_is_not_a_program(tmp_path: Path) -> None:
    whole = Path(LS).read_bytes()
    for length in (8, 20, 70):
        path = tmp_path / f"cut-{length}"
        path.write_bytes(whole[:length])
        with pytest.raises(Unknown):
            ignored_tunables([str(path)], ENVIRONMENT, "/")
