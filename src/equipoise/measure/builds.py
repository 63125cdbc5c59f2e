"""Building the programs of levels, once, before a campaign."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import tempfile
from collections.abc import Mapping
from pathlib import Path

from equipoise.measure.hooks import SHELL, end_group, last_words, status_words, tail
from equipoise.model.errors import ConditionFailed

VARIABLE = "EQUIPOISE_BUILD"

_FULL_BYTES = 1 << 20


def build_levels(
    lines: Mapping[str, str], home: Path, environment: Mapping[str, str], working_folder: str
) -> dict[str, str]:
    """Build each level in a new folder; gives the folders by level.

    They are kept: a campaign that is resumed runs what it began with.

    Parameters
    ----------
    lines
        A line for the shell for each level; ``{build}`` stands for its folder, which
        ``$EQUIPOISE_BUILD`` names as well.
    home
        In which the new folders are made.

    Raises
    ------
    ConditionFailed
        A line failed.
    """
    if not lines:
        return {}
    home.mkdir(parents=True, exist_ok=True)
    builds: dict[str, str] = {}
    for level, line in lines.items():
        prefix = re.sub(r"[^\w.-]", "_", level) + "-"
        folder = builds[level] = tempfile.mkdtemp(prefix=prefix, dir=os.path.abspath(home))
        done = subprocess.run(
            [SHELL, "-c", line.replace("{build}", folder)],
            env={**environment, VARIABLE: folder},
            cwd=working_folder,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            check=False,
        )
        if done.returncode != 0:
            raise ConditionFailed(
                f"{level} cannot be built: exit status {done.returncode}: {line}"
                + last_words(done.stdout.decode("utf-8", "replace")).replace("stderr: ", ""),
                mend="try the line by hand; it runs through sh in the working folder",
            )
    return builds


def build_revision(
    line: str, folder: Path, home: Path, environment: Mapping[str, str], revision: str
) -> None:
    """Run the line that builds a revision in its working tree, untimed.

    Parameters
    ----------
    folder
        Where it runs.
    home
        The working tree, which ``$EQUIPOISE_BUILD`` names: by it a build is found that outlives
        a killed gate.
    revision
        For the message.

    Raises
    ------
    ConditionFailed
        It failed; the message has the end of what it printed.
    """
    with tempfile.TemporaryFile() as said:
        process = subprocess.Popen(
            [SHELL, "-c", line],
            env={**environment, VARIABLE: str(home)},
            cwd=folder,
            stdin=subprocess.DEVNULL,
            stdout=said,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
        try:
            status = process.wait()
        except BaseException:
            end_group(process)
            raise
        if status != 0:
            raise ConditionFailed(
                f"{revision} cannot be built: {status_words(status)}: {line}"
                + last_words(tail(said.fileno())).replace("; stderr: ", "; it said: "),
                mend=_mend_of(home),
            )


def _mend_of(home: Path) -> str:
    # What a build says of a full disk often went to that disk.
    if shutil.disk_usage(home).free < _FULL_BYTES:
        return f"the disk of {home} is full: set TMPDIR to a folder of one with room"
    return (
        "try the line by hand in a fresh clone: files that are not committed are not in a revision"
    )
