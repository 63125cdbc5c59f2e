"""For which processor a condition's BLAS is tuned: said by the library itself, untimed.

OpenBLAS writes the core that it chose to standard error when it is loaded
(``OPENBLAS_VERBOSE=2``), BLIS when it is used first (``BLIS_ARCH_DEBUG=1``). A name that OpenBLAS
does not know, and any name at all with BLIS 0.9, which takes numbers only, they pass over.
"""

from __future__ import annotations

import re
import signal
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from equipoise.measure.hooks import signal_words
from equipoise.measure.surroundings.host import Unknown
from equipoise.measure.surroundings.untimed import run_untimed

OPENBLAS_VARIABLE = "OPENBLAS_CORETYPE"
BLIS_VARIABLE = "BLIS_ARCH_TYPE"
CORE_VARIABLES = (OPENBLAS_VARIABLE, BLIS_VARIABLE)
_ASKED_TO_SAY = {"OPENBLAS_VERBOSE": "2", "BLIS_ARCH_DEBUG": "1"}
_OPENBLAS = re.compile(r"^Core: (?P<core>\S+)$", re.MULTILINE)
_BLIS = re.compile(r"^libblis: selecting sub-configuration '(?P<core>\S+)'\.$", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class Tuned:
    """What the libraries of one process said, each core once."""

    openblas: tuple[str, ...] = ()
    blis: tuple[str, ...] = ()

    @property
    def cores(self) -> tuple[str, ...]:
        """Of all of them."""
        return self.openblas + self.blis


def tuned_for(
    command: Sequence[str], environment: Mapping[str, str], working_folder: str, timeout_s: float
) -> Tuned:
    """Run a command once, and find what its BLAS is tuned for.

    Raises
    ------
    Unknown
        It cannot be run, takes longer than ``timeout_s`` seconds, or ends by a signal.
    """
    with tempfile.TemporaryDirectory(prefix="equipoise-") as scratch:
        errors = Path(scratch, "errors")
        status = run_untimed(
            command,
            {**environment, **_ASKED_TO_SAY},
            working_folder,
            timeout_s,
            errors_to=errors,
        )
        text = errors.read_text("utf-8", "backslashreplace")
    if status < 0:
        lacks = ": the CPU lacks instructions of that core type" if -status == signal.SIGILL else ""
        raise Unknown(f"it ended by {signal_words(-status)}{lacks}")
    return Tuned(_cores(_OPENBLAS, text), _cores(_BLIS, text))


def _cores(pattern: re.Pattern[str], text: str) -> tuple[str, ...]:
    return tuple(dict.fromkeys(found["core"] for found in pattern.finditer(text)))
