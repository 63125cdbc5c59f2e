"""The plan of a campaign: what is run, how it is measured, and how it is judged.

A plan is fixed before the first trial and kept whole in the ledger: with the trials it
is all that a verdict is computed from (rule 6).
"""

from __future__ import annotations

from hashlib import blake2b
from typing import Literal

from msgspec import Struct, field

from equipoise.model.kinds import Kind, Terms, kind_named, kind_of_study, tag_of

PRIMARY_METRIC = "wall_s"
CALL_METRIC = "call_s"
"""Seconds of one call: the metric that decides in a campaign of functions."""
PADDING_VARIABLE = "EQUIPOISE_PADDING"
"""Enlarges the environment of every trial; a condition that sets it itself is not enlarged."""
TUNABLES_VARIABLE = "GLIBC_TUNABLES"
"""Sets tunables of the C library (ld.so(8))."""
MAX_RANKED_CONDITIONS = 20
"""Largest number of conditions, the baseline among them, of which the fastest is asked: the pairs
grow with its square."""
MIN_RANKED_CONDITIONS = 3
"""With one candidate, its verdict is the ranking."""
COMPARE_STUDY = "compare"
"""The study of every campaign of `compare`."""
COMMAND = "command"
"""Factor whose levels are the commands of `compare`, if parameters vary beside them."""
LAYOUT = "{layout}"
"""Placeholder in a command for the number of the layout that its block has drawn."""
SOCKET = "{folder}/socket"
"""Unix socket of a server, for which Equipoise waits if no command tells that it is ready."""
COVARIATES_BEFORE_TRIAL = (
    "load_1_minute",
    "pressure_cpu_before",
    "pressure_memory_before",
    "pressure_io_before",
    "steal_before",
    "frequency_before_hz",
    "temperature_c",
)
"""Covariates that are read before a trial begins, so that its own program cannot move them.

The trial before can: pressure and steal are rates since it began, and load, frequency and
temperature follow it.
"""
MAX_COVARIATES = 8
"""Largest number of covariates that are tried; crates/verdict has the same bound."""
OutputKind = Literal["discard", "inherit", "count", "file"]
ServerTrial = Literal["life", "interval"]
"""Length of one trial of a server: its whole life, or an interval while it runs on."""


_IDENTITY_BYTES = 16


class Hooks(Struct, frozen=True):
    """Commands around the trials, run through a shell and never timed."""

    setup: str | None = None
    """Before the first trial of the condition."""
    prepare: str | None = None
    """Before each trial."""
    conclude: str | None = None
    """After each trial."""
    cleanup: str | None = None
    """After the last trial of the condition."""


class Process(Struct, frozen=True):
    """Settings of a process beside its command; ``None`` leaves a setting as usual."""

    working_folder: str | None = None
    """Absolute; by default that of the plan."""
    cpus: tuple[int, ...] | None = None
    """The CPUs that it may use."""
    random_addresses: bool | None = None
    """Whether its addresses are drawn at random (ASLR)."""
    huge_pages: bool | None = None
    """Whether it may have transparent huge pages."""


class Layout(Struct, frozen=True):
    """Place of processes in memory: one level of the random factor ``layout``."""

    environment_bytes: int
    """Bytes by which the environment is enlarged."""
    argument_bytes: int
    """Slashes that are added to the path by which the program is executed."""
    random_addresses: bool
    """Whether the kernel draws the addresses anew in each trial (ASLR)."""


class Server(Struct, frozen=True):
    """A server and the commands around its life; the condition's command is its client.

    In every command, and in the environment, ``{folder}`` is the server's own folder, new in each
    life, ``{port}`` a port of the loopback interface that nobody listens on, and
    ``{password_file}`` a file with a random password, new in each life.
    """

    start: tuple[str, ...]
    """Command that runs in the foreground until the server is stopped; the program comes first."""
    environment: dict[str, str] = field(default_factory=dict)
    """Variables of the server and what prepares it, over the environment of the caller."""
    process: Process = Process()
    """Settings of the server; its working folder is ``{folder}`` by default."""
    install: tuple[str, ...] | None = None
    """Command that runs to its end once in each segment, in an empty folder. Every life begins
    with a copy of that folder. The levels of a study do not change this command."""
    fill: tuple[str, ...] | None = None
    """Command that runs once, after ``install``, while a server runs in that folder."""
    prepare: tuple[str, ...] | None = None
    """Command that runs to its end before the server starts."""
    ready: tuple[str, ...] | None = None
    """Command that is repeated until it succeeds; without one, Equipoise waits until the port
    accepts, or ``SOCKET`` where the start command has no port."""
    stop: tuple[str, ...] | None = None
    """Command that ends the server; without one, ``stop_signal`` ends it."""
    stop_signal: str = "TERM"
    ready_s: float = 30.0
    """Seconds that the server may take to be ready, and to stop."""
    search_path: tuple[str, ...] = ()
    """Folders behind those of ``PATH``, for the server and for all of its commands."""
    unprivileged: bool = False
    """Whether the server refuses to run as root; started by root, it runs as another user."""
    trial: ServerTrial = "life"
    """Length of a trial; the same for all servers of a plan."""


class Output(Struct, frozen=True):
    """Destination of a trial's standard output; never a pipe that it could block on."""

    kind: OutputKind = "discard"
    path: str | None = None
    """The file, for the kind ``file``."""


class Started(Struct, frozen=True):
    """What is started to be measured."""

    command: tuple[str, ...]
    environment: dict[str, str]
    process: Process


class Condition(Struct, frozen=True):
    """One level of each factor: one thing that can be run."""

    name: str
    command: tuple[str, ...]
    """The argument vector; with a shell, the shell and its arguments come first."""
    levels: dict[str, str] = field(default_factory=dict)
    environment: dict[str, str] = field(default_factory=dict)
    """Variables of this condition, over the environment of the caller."""
    hooks: Hooks = Hooks()
    process: Process = Process()
    server: Server | None = None
    """Server of the condition; ``command`` is its client then."""
    mapped_from: tuple[str, ...] = ()
    """Folders and files: its process must map a library from each, or the campaign does not
    begin."""
    reports: tuple[str, ...] = ()
    """Metrics that its workload reports; a result gives the reason for each missing one."""
    tuned_for: tuple[str, ...] = ()
    """Core types of which the BLAS must report one."""
    output: Output | None = None
    """Destination of its standard output (with a server, the client's); else the plan's."""

    @property
    def started(self) -> Started:
        """Its server, or its command if it has none."""
        server = self.server
        if server is None:
            return Started(self.command, self.environment, self.process)
        return Started(server.start, server.environment, server.process)

    @property
    def has_programs_by_layout(self) -> bool:
        """Whether its command differs between layouts."""
        return any(LAYOUT in word for word in self.command)

    def command_in(self, layout: int | None) -> tuple[str, ...]:
        """Return the command in a layout, by its number from 1; ``None`` without layouts."""
        if layout is None:
            return self.command
        return tuple(word.replace(LAYOUT, str(layout)) for word in self.command)


class Contrast(Struct, frozen=True):
    """Two conditions that are compared."""

    baseline: int
    candidate: int
    """Indices into the plan's conditions. A condition is the candidate of one contrast at most,
    and the baseline of none that it is a candidate in."""
    factor: str | None = None
    """Factor in whose levels they differ."""
    stratum: dict[str, str] = field(default_factory=dict)
    """The levels of the other factors, equal in both."""

    @property
    def pair(self) -> tuple[int, int]:
        """The baseline and the candidate."""
        return (self.baseline, self.candidate)


class Measure(Struct, frozen=True):
    """How trials are run."""

    working_folder: str
    input: str | None = None
    """A file for standard input; nothing (``/dev/null``) by default."""
    output: Output = Output()
    timeout_s: float = 600.0
    warmup: int = 1
    """Trials of each condition before the first block, kept and marked, never analysed."""
    washout: bool = False
    """Whether one condition runs, uncounted, before each trial of a block; the coin draws it for
    the whole block."""
    ignore_failure: bool = False
    ignored_exits: tuple[int, ...] = ()
    """Exit statuses that alone are ignored; none for all."""
    vary_environment_size: bool = True
    """Draw the size of the environment anew for each block (Mytkowicz et al. 2009)."""
    counters: tuple[str, ...] = ()
    """Counters of each trial beside its usual accounting."""


class Stopping(Struct, frozen=True):
    """When a campaign ends."""

    blocks: int | None = None
    """Largest number of blocks; by default the budget alone is the limit."""
    min_blocks: int = 5
    """Number of blocks before which no verdict is looked for. The bets allow none before 7 at alpha
    0.05 (`stats.verdict.earliest_block`)."""
    min_blocks_explicit: bool = False
    """An explicit minimum beats the budget."""
    budget_s: float = 60.0
    precision: float | None = None
    """Go on until the interval is at most this wide, in percent."""
    tail: float | None = None
    """Go on until a slow run that comes in this percentage of runs would have shown."""
    leave_out_decided: bool = False
    """Whether only conditions that an open question needs run on, so that these get the budget."""
    min_seconds: float = 1.0
    """Seconds of measured blocks before the first verdict: a shorter campaign sees one moment of
    the machine. It only delays a stop; the block limit and the budget end a campaign before it."""
    blocks_before_budget: int = 0
    """Number of blocks that run even if they exceed the budget."""
    patient: bool = False
    """Whether the campaign exceeds its budget, by less than half, where a forecast says that a
    verdict is that near."""


class Judgement(Struct, frozen=True):
    """How the trials are judged."""

    alpha: float = 0.05
    min_effect: float = 1.0
    """The smallest effect that matters, in percent; 0 for none."""
    primary_metric: str = PRIMARY_METRIC
    other_metrics: tuple[str, ...] = ()
    """Judged at the stop, with the false-discovery rate at alpha among them."""
    adjust_by: tuple[str, ...] = ()
    """Covariates that costs may be adjusted by; the user chooses to (``--adjust``)."""


class Membership(Struct, frozen=True):
    """Place of a campaign in the run that it is a part of."""

    whole: str
    """Identity of that run: 32 hexadecimal digits."""
    place: int
    """Place among its parts, from 0."""


def member_identity(whole: str, place: int) -> str:
    """Return the identity of the run at a place among the parts of another run.

    Both have 32 hexadecimal digits.
    """
    text = f"equipoise run of a host: {whole} {place}"
    return blake2b(text.encode("ascii"), digest_size=_IDENTITY_BYTES).hexdigest()


class Plan(Struct, frozen=True):
    """Everything that was decided before the first trial.

    Unless the contrasts are given, the first condition is the baseline and each other one but
    the control is a candidate, unless the terms of its kind say otherwise.
    """

    study: str
    conditions: tuple[Condition, ...]
    measure: Measure
    stopping: Stopping
    judgement: Judgement
    seed: int
    control: int | None = None
    """The condition that runs the baseline a second time, to check the tool."""
    chosen_contrasts: tuple[Contrast, ...] | None = None
    """Contrasts, if not everything is compared with the first condition."""
    sizes: tuple[str, ...] = ()
    """The factors of a study that are sizes: their levels are read as a scaling law."""
    layouts: tuple[Layout, ...] = ()
    """Layouts, one for each block; none if layout is no factor."""
    ranking: bool = True
    """Whether it also asks which condition is the fastest; a gate and an experiment never do."""
    command_line: tuple[str, ...] = ()
    """Words that its user typed, with its seed and without the options that change no number; empty
    if no command was typed."""
    terms: Terms | None = None
    """Terms of its kind; ``None`` for an ordinary comparison."""
    membership: Membership | None = None
    """The run that it is a part of, if it is one."""

    @property
    def kind(self) -> Kind:
        """The kind of campaign."""
        return kind_of_study(self.study) if self.terms is None else kind_named(tag_of(self.terms))

    @property
    def rules(self) -> Terms:
        """The terms of its kind; without any, what holds for the campaigns of its study."""
        return self.rules_of_study if self.terms is None else self.terms

    @property
    def rules_of_study(self) -> Terms:
        """What holds for the campaigns of its study, whatever the kind."""
        return kind_of_study(self.study).part("rules", Terms)

    @property
    def groups(self) -> tuple[tuple[Contrast, ...], ...]:
        """Groups of contrasts with one baseline."""
        groups: dict[tuple[int, str | None], list[Contrast]] = {}
        for contrast in self.contrasts:
            groups.setdefault((contrast.baseline, contrast.factor), []).append(contrast)
        return tuple(map(tuple, groups.values()))

    @property
    def ranked_groups(self) -> tuple[tuple[Contrast, ...], ...]:
        """Groups of contrasts of which it is asked which condition is the fastest."""
        # Over layouts the verdicts hold for layouts in general, and so would a ranking have to.
        if not self.ranking or self.layouts or not self.rules.ranks:
            return ()
        return tuple(
            group
            for group in self.groups
            if MIN_RANKED_CONDITIONS <= len(group) + 1 <= MAX_RANKED_CONDITIONS
        )

    @property
    def adjust_by(self) -> tuple[str, ...]:
        """Covariates that costs may be adjusted by; none where the plan is no plan for it."""
        fits = self.not_adjustable_because is None
        return self.judgement.adjust_by[:MAX_COVARIATES] if fits else ()

    @property
    def not_adjustable_because(self) -> str | None:
        """Reason why no cost may be adjusted by a covariate; ``None`` where it may.

        What belongs to a condition must not come before its own reading, and the guard against
        what a condition leaves behind sees only the trials of two.
        """
        number = len(self.conditions)
        if number != 2:
            conditions = "1 condition" if number == 1 else f"{number} conditions"
            return (
                f"{conditions} (a control counts): Equipoise can look at what conditions leave "
                "behind only if there are 2"
            )
        if self.measure.washout:
            return "a washout runs before each reading and can move it"
        hooks = [condition.hooks for condition in self.conditions]
        if any(hook.setup or hook.prepare or hook.conclude for hook in hooks):
            return "a hook of a condition runs before a reading and can move it"
        if any(condition.server is not None for condition in self.conditions):
            return "a server of a condition runs before a reading and can move it"
        if self.layouts:
            return "the verdict over layouts rests on the layouts, not on the blocks"
        return self.rules.not_adjustable_because

    @property
    def contrasts(self) -> tuple[Contrast, ...]:
        """Contrasts of the plan."""
        if self.chosen_contrasts is not None:
            return self.chosen_contrasts
        if self.terms is not None and (own := self.terms.contrasts(self)) is not None:
            return own
        return tuple(Contrast(0, i) for i in range(1, len(self.conditions)) if i != self.control)

    def names_of(self, contrast: Contrast) -> tuple[str, str]:
        """Return the names of the baseline and of the candidate of a contrast."""
        return self.conditions[contrast.baseline].name, self.conditions[contrast.candidate].name

    @property
    def describes_one(self) -> bool:
        """Whether it measures a single condition, which is described and compared with nothing."""
        return (
            not self.contrasts
            and self.rules.describes_one
            and len(self.described) == 1
            and self.rules_of_study.describes_one
        )

    @property
    def warmup_blocks(self) -> int:
        """Blocks of warm-up: programs of their own in each layout are warmed up in each."""
        by_layout = any(condition.has_programs_by_layout for condition in self.conditions)
        return self.measure.warmup * (len(self.layouts) if self.layouts and by_layout else 1)

    @property
    def described(self) -> tuple[int, ...]:
        """The conditions that a result shows: all but the control."""
        return tuple(i for i in range(len(self.conditions)) if i != self.control)
