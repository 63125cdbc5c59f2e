"""The long commands that are attacked, each small enough to end within seconds."""

from __future__ import annotations

import shutil
from dataclasses import dataclass

from tests.chaos.workplace import ENTRY, Workplace

DONE = frozenset({0})
OPEN = ("--alpha", "1e-9", "--min-effect", "0")
VERDICTS = frozenset({"faster", "slower", "equivalent", "mixed", "undecided"})


@dataclass(frozen=True, slots=True)
class LongCommand:
    """One command line, and how it goes on after a fault."""

    name: str
    arguments: tuple[str, ...]
    resume: tuple[str, ...] | None = None
    """Options of ``equipoise resume last``; without them the same command is run again."""
    then: tuple[str, ...] | None = None
    """Command of the next start, where it is neither of these."""
    ledger: str | None = None
    """Ledger of the template that the command begins with."""
    folder: str = "."
    """Working folder below the work folder."""
    logs: tuple[str, ...] = ()
    """Files to which each trial adds one line when it starts."""
    repeated: frozenset[int] = DONE
    """Exit statuses that are right when the same command is run again."""
    longest_s: float = 900.0
    """Seconds after which the command counts as hanging."""
    latest_s: float = 30.0
    """Seconds after which no fault comes any more."""
    measures: bool = True
    """Whether it runs trials, and so clears away what a killed campaign has left."""

    def prepare(self, place: Workplace) -> None:
        """Put the ledger in place, and an old page that a new one will replace."""
        place.ledger.parent.mkdir(exist_ok=True)
        if self.ledger is not None:
            shutil.copyfile(place.work / self.ledger, place.ledger)
        place.report().write_text(OLD_PAGE)

    def line(self, place: Workplace) -> tuple[str, ...]:
        """Return the command line."""
        words = (word.replace("{work}", str(place.work)) for word in self.arguments)
        return (*ENTRY, *words)

    def next_line(self, place: Workplace) -> tuple[str, ...]:
        """Return the command line of the next start: resume, or the same again."""
        if self.then is not None:
            return (*ENTRY, *self.then)
        if self.resume is None:
            return self.line(place)
        return (*ENTRY, "resume", "last", "--json", "-", *self.resume)

    def started_trials(self, place: Workplace) -> int:
        """Return how many trials have started, by their own logs."""
        logs = (place.work / name for name in self.logs)
        return sum(log.read_text().count("\n") for log in logs if log.exists())


OLD_PAGE = "<html>the old page</html>\n"
LEDGER = ("--ledger", "{work}/.equipoise/ledger.db")
PAIR = ("./chaos-trial-quick", "./chaos-trial-slow")
LOGS = ("chaos-trial-quick.log", "chaos-trial-slow.log")

COMMANDS: dict[str, LongCommand] = {
    command.name: command
    for command in (
        LongCommand(
            "compare",
            ("compare", *PAIR, "--quiet", "--blocks", "12", *OPEN, "--report", "page.html"),
            resume=("--blocks", "14"),
            logs=LOGS,
        ),
        LongCommand(
            "compare with strays",
            (
                "compare",
                "./chaos-stray-quick",
                "./chaos-stray-slow",
                "--quiet",
                "--blocks",
                "12",
                *OPEN,
            ),
            resume=("--blocks", "14"),
            logs=("chaos-stray-quick.log", "chaos-stray-slow.log"),
        ),
        LongCommand(
            "compare with hooks",
            ("compare", *PAIR, "--quiet", "--blocks", "8", *OPEN)
            + (
                "--prepare",
                "sleep 0.02 & wait",
                "--conclude",
                "sleep 0.01",
                "--setup",
                "sleep 0.1",
            ),
            resume=("--blocks", "10"),
        ),
        LongCommand(
            "compare --layouts",
            (
                "compare",
                "./laid.layouts/layout-{layout}",
                "./out.layouts/layout-{layout}",
                "--layouts",
                "3",
            )
            + ("--quiet", "--blocks", "30", *OPEN),
            resume=("--blocks", "33"),
        ),
        LongCommand(
            "compare --what-varies",
            ("compare", "./chaos-trial-quick", "--what-varies", "--quiet", "--blocks", "8"),
            resume=("--blocks", "9"),
            logs=LOGS[:1],
        ),
        LongCommand(
            "run with a build",
            ("run", "built.toml", "--quiet"),
            resume=("--blocks", "22"),
        ),
        LongCommand(
            "run with a server",
            ("run", "served.toml", "--quiet"),
            resume=("--blocks", "8"),
        ),
        LongCommand(
            "resume",
            ("resume", "last", "--quiet", "--blocks", "15"),
            resume=("--blocks", "17"),
            ledger="open.db",
            logs=LOGS,
        ),
        LongCommand(
            "os",
            ("os", "--quick", "--only", "file_create_0k,fork", "--blocks", "2", "--min-blocks", "2")
            + ("--budget", "3", "--quiet"),
            resume=("--blocks", "4"),
        ),
        LongCommand(
            "why",
            ("why", "last", "--quiet", "--budget", "3", "--blocks", "5", "--repetitions", "2"),
            ledger="decided.db",
        ),
        LongCommand(
            "gate",
            ("gate", "--baseline", "before", "--build", "./build.sh", "--quiet", "--blocks", "8")
            + ("--min-effect", "100", *LEDGER, "--", "./program"),
            folder="project",
        ),
        LongCommand(
            "bisect",
            ("bisect", "--good", "good", "--build", "./build.sh", "--quiet", "--blocks", "40")
            + (*LEDGER, "--", "./program"),
            folder="searched",
            resume=("--blocks", "50", "--ledger", "../.equipoise/ledger.db"),
        ),
        LongCommand(
            "history",
            ("history", "--from", "good", "--build", "./build.sh", "--quiet", "--blocks", "20")
            + (*LEDGER, "--", "./program"),
            folder="searched",
            resume=("--blocks", "25", "--ledger", "../.equipoise/ledger.db"),
        ),
        LongCommand(
            "doctor --certify",
            ("doctor", "--certify", "--quiet"),
            then=("doctor", "--quiet"),
            longest_s=900,
            latest_s=8.0,
        ),
        LongCommand(
            "layouts",
            ("layouts", "--count", "15", "--", "cc", "main.c", "list.c", "-o", "program"),
            measures=False,
        ),
        LongCommand(
            "genmatch",
            ("genmatch", "people.csv", "--treatment", "treat", "--outcome", "re78", "--covariates")
            + ("age,educ,re74", "--generations", "15", "--hard-limit", "--wait", "15", "--quiet"),
            measures=False,
        ),
        LongCommand(
            "observe",
            ("observe", "jobs.csv", "--treatment", "version=2.0:1.0", "--outcome", "wall_s")
            + ("--covariates", "load,cache", "--exact", "host_type", "--cluster", "day", "--quiet")
            + ("--report", "page.html"),
            measures=False,
        ),
        LongCommand(
            "import",
            ("import", "hyperfine.json", "--quiet", "--report", "page.html"),
            measures=False,
        ),
        LongCommand(
            "report",
            ("report", "last", "-o", "page.html"),
            ledger="decided.db",
            measures=False,
        ),
    )
}
