"""The plan of a campaign: its conditions, how they are measured, and how they are judged.

A plan is fixed before the first trial and stored in the ledger. A verdict is computed only from the
plan and the trials (rule 6).
"""

from __future__ import annotations

from hashlib import blake2b
from typing import Literal

from msgspec import Struct, field

from equipoise.model.kinds import Kind, Terms, kind_named, kind_of_study, tag_of

PRIMARY_METRIC = "wall_s"
CALL_METRIC = "call_s"
"""Seconds of one call: the primary metric of a comparison of Python functions."""
PADDING_VARIABLE = "EQUIPOISE_PADDING"
"""Variable that enlarges the environment of every trial. A condition may set it itself."""
PLAIN_PADDING_VARIABLE = "PADDING"
"""Variable that enlarges the environment of trials without the variables of Equipoise. Its value
begins with the scratch folder, by which the processes of a killed campaign are found."""
OWN_PREFIX = "EQUIPOISE_"
"""Beginning of the names of Equipoise's own variables."""
TUNABLES_VARIABLE = "GLIBC_TUNABLES"
"""Variable with tunables of the C library (ld.so(8))."""
MAX_RANKED_CONDITIONS = 20
"""Maximum number of ranked conditions, because the number of pairs grows with its square."""
MIN_RANKED_CONDITIONS = 3
"""Minimum number of ranked conditions: the verdict on a single candidate is a ranking already."""
COMPARE_STUDY = "compare"
"""Name of the study of every campaign of `compare`."""
COMMAND = "command"
"""Factor whose levels are the commands of `compare`, if parameters vary as well."""
LAYOUT = "{layout}"
"""Placeholder in a command for the number of the block's layout."""
SOCKET = "{folder}/socket"
"""Unix socket of a server; Equipoise waits for it if the server has no command ``ready``."""
COVARIATES_BEFORE_TRIAL = (
    "load_1_minute",
    "pressure_cpu_before",
    "pressure_memory_before",
    "pressure_io_before",
    "steal_before",
    "frequency_before_hz",
    "temperature_c",
)
"""Covariates that are read before a trial begins, so that only earlier trials can change them."""
MAX_COVARIATES = 8
"""Maximum number of covariates; crates/verdict has the same bound."""
OutputKind = Literal["discard", "inherit", "count", "file"]
"""Destination of output: ``inherit`` uses Equipoise's own, ``count`` counts the bytes in a file."""
ServerTrial = Literal["life", "interval"]
"""Length of one trial of a server: its whole life, or an interval while it keeps running."""
_IDENTITY_BYTES = 16


class Hooks(Struct, frozen=True):
    """Commands before and after trials, run through a shell and never timed."""

    setup: str | None = None
    """Command before the first trial of the condition."""
    prepare: str | None = None
    """Command before each trial."""
    conclude: str | None = None
    """Command after each trial."""
    cleanup: str | None = None
    """Command after the last trial of the condition."""


class Process(Struct, frozen=True):
    """Settings of a process; ``None`` leaves a setting unchanged."""

    working_folder: str | None = None
    """Absolute path; by default the working folder of the plan."""
    cpus: tuple[int, ...] | None = None
    """CPUs that the process may use."""
    random_addresses: bool | None = None
    """Whether its memory addresses are drawn at random (ASLR)."""
    huge_pages: bool | None = None
    """Whether the process may have transparent huge pages."""


class Layout(Struct, frozen=True):
    """Layout of processes in memory: one level of the random factor ``layout``."""

    environment_bytes: int
    """Bytes by which the environment is enlarged."""
    argument_bytes: int
    """Number of slashes added to the path by which the program is executed."""
    random_addresses: bool
    """Whether the kernel draws new addresses in each trial (ASLR)."""


class Server(Struct, frozen=True):
    """A server and the commands around its life; the condition's command is its client.

    Commands and environment may contain three placeholders. ``{folder}`` is the server's own
    folder. ``{port}`` is a free port of the loopback interface. ``{password_file}`` is a file with
    a random password. Folder and password are new in each life.
    """

    start: tuple[str, ...]
    """Command that runs in the foreground until the server is stopped; the program comes first."""
    environment: dict[str, str] = field(default_factory=dict)
    """Variables of the server and of its other commands, added to the environment of the caller."""
    process: Process = Process()
    """Settings of the server; its working folder is ``{folder}`` by default."""
    install: tuple[str, ...] | None = None
    """Command that runs to its end once in each segment, in an empty folder. Every life starts with
    a copy of that folder."""
    fill: tuple[str, ...] | None = None
    """Command that runs once, after ``install``, while a server runs in that folder."""
    prepare: tuple[str, ...] | None = None
    """Command that runs to its end before the server starts."""
    ready: tuple[str, ...] | None = None
    """Command that is repeated until it succeeds. Without it, Equipoise waits until the port
    accepts connections, or ``SOCKET`` if the start command has no port."""
    stop: tuple[str, ...] | None = None
    """Command that stops the server; without it, Equipoise sends ``stop_signal``."""
    stop_signal: str = "TERM"
    ready_s: float = 30.0
    """Maximum number of seconds until the server is ready, and until it has stopped."""
    search_path: tuple[str, ...] = ()
    """Folders that are added to the end of ``PATH``, for the server and its commands."""
    unprivileged: bool = False
    """Whether the server refuses to run as root; Equipoise then runs it as another user."""
    trial: ServerTrial = "life"
    """Length of a trial; the same for all servers of a plan."""


class Output(Struct, frozen=True):
    """Destination of a trial's standard output; never a pipe on which it could block."""

    kind: OutputKind = "discard"
    path: str | None = None
    """Path of the file, for the kind ``file``."""


class MeasuredProcess(Struct, frozen=True):
    """The process that is measured."""

    command: tuple[str, ...]
    environment: dict[str, str]
    process: Process


class Condition(Struct, frozen=True):
    """One level of each factor: a command that is measured and compared."""

    name: str
    command: tuple[str, ...]
    """Program and arguments; with a shell, the shell and its arguments come first."""
    levels: dict[str, str] = field(default_factory=dict)
    environment: dict[str, str] = field(default_factory=dict)
    """Variables of this condition, added to the environment of the caller."""
    hooks: Hooks = Hooks()
    process: Process = Process()
    server: Server | None = None
    """Server of the condition; ``command`` is its client then."""
    mapped_from: tuple[str, ...] = ()
    """Folders and files; the campaign starts only if the process maps a library from each."""
    reports: tuple[str, ...] = ()
    """Metrics that the workload reports; a result gives a reason for each missing metric."""
    tuned_for: tuple[str, ...] = ()
    """Processor types; the BLAS library must report one of them."""
    output: Output | None = None
    """Destination of standard output (of the client, with a server); by default the plan's."""

    @property
    def measured_process(self) -> MeasuredProcess:
        """Process of the server; without a server, process of the command."""
        server = self.server
        if server is None:
            return MeasuredProcess(self.command, self.environment, self.process)
        return MeasuredProcess(server.start, server.environment, server.process)

    @property
    def has_programs_by_layout(self) -> bool:
        """Whether the command differs between layouts."""
        return any(LAYOUT in word for word in self.command)

    def command_in(self, layout: int | None) -> tuple[str, ...]:
        """Return the command in a layout, by its number from 1; ``None`` for no layout."""
        if layout is None:
            return self.command
        return tuple(word.replace(LAYOUT, str(layout)) for word in self.command)


class Contrast(Struct, frozen=True):
    """Two conditions that are compared, as indices into the plan's conditions."""

    baseline: int
    candidate: int
    """Index of the candidate. Each condition is the candidate of at most one contrast."""
    factor: str | None = None
    """Factor of which the two conditions have different levels."""
    stratum: dict[str, str] = field(default_factory=dict)
    """Levels of the other factors, equal in both conditions."""

    @property
    def pair(self) -> tuple[int, int]:
        """Indices of baseline and candidate."""
        return (self.baseline, self.candidate)


CpuSets = tuple[tuple[int, ...], ...]
"""CPUs of each of the trials that run at once: two sets, or none if trials run in turns."""


class Measure(Struct, frozen=True):
    """Settings for running trials."""

    working_folder: str
    input: str | None = None
    """File for standard input; ``/dev/null`` by default."""
    output: Output = Output()
    timeout_s: float = 600.0
    warmup: int = 1
    """Number of trials of each condition before the first block; recorded, but never analysed."""
    washout: bool = False
    """Whether washouts run: uncounted trials before each trial, of a condition drawn for each
    block."""
    ignore_failure: bool = False
    """Whether the campaign continues after a failed trial; a timeout never ends it."""
    ignored_exits: tuple[int, ...] = ()
    """Exit statuses that are ignored; empty for all."""
    vary_environment_size: bool = True
    """Whether each block draws a new size of the environment (Mytkowicz et al. 2009)."""
    counters: tuple[str, ...] = ()
    """Counters that are read in each trial, in addition to times and memory."""
    own_variables: bool = True
    """Whether trials have the variables of Equipoise, by which a program sees that it is measured.
    Without them, it cannot report metrics."""
    cpu_sets: CpuSets = ()
    """CPUs of the trials that run at once (``--duet``): even positions of a block have the first
    set, odd positions the second. Empty if trials run in turns."""


class Stopping(Struct, frozen=True):
    """Conditions under which a campaign ends."""

    blocks: int | None = None
    """Maximum number of blocks; by default only the budget is a limit."""
    min_blocks: int = 5
    """Minimum number of blocks for a verdict (see also `stats.verdict.earliest_block`)."""
    min_blocks_explicit: bool = False
    """Whether the user chose the minimum, which then takes precedence over the budget."""
    budget_s: float = 60.0
    precision: float | None = None
    """Width of the interval, in percent, that the campaign must reach."""
    tail: float | None = None
    """The campaign continues until slow runs in this percentage of runs would have appeared."""
    leave_out_decided: bool = False
    """Whether blocks leave decided conditions out, so that undecided conditions get the budget."""
    min_seconds: float = 1.0
    """Minimum seconds of measured blocks for a verdict: a shorter campaign sees only one moment of
    the machine. Limits can still end the campaign earlier."""
    blocks_before_budget: int = 0
    """Minimum number of blocks, even beyond the budget."""
    patient: bool = False
    """Whether the campaign may exceed its budget by less than half, if a verdict is forecast."""


class Judgement(Struct, frozen=True):
    """Settings for judging the trials."""

    alpha: float = 0.05
    min_effect: float = 1.0
    """Smallest effect that matters, in percent; 0 for none."""
    primary_metric: str = PRIMARY_METRIC
    other_metrics: tuple[str, ...] = ()
    """Metrics that are judged at the stop; their common false-discovery rate is alpha."""
    adjust_by: tuple[str, ...] = ()
    """Covariates by which costs may be adjusted, chosen by the user (``--adjust``)."""


class Membership(Struct, frozen=True):
    """Membership of a host's campaign in the run of a fleet."""

    fleet_identity: str
    """Identity of the fleet's run: 32 hexadecimal digits."""
    host_index: int
    """Index of the host in the fleet, from 0."""


def member_identity(fleet_identity: str, host_index: int) -> str:
    """Return the identity of the run of one host of a fleet: 32 hexadecimal digits."""
    text = f"equipoise run of a host: {fleet_identity} {host_index}"
    return blake2b(text.encode("ascii"), digest_size=_IDENTITY_BYTES).hexdigest()


class Plan(Struct, frozen=True):
    """All decisions before the first trial.

    By default the first condition is the baseline, and each other condition except the control is a
    candidate. ``chosen_contrasts`` or the terms of the kind can change that.
    """

    study: str
    conditions: tuple[Condition, ...]
    measure: Measure
    stopping: Stopping
    judgement: Judgement
    seed: int
    control: int | None = None
    """Index of the condition that runs the baseline a second time, to check the tool."""
    chosen_contrasts: tuple[Contrast, ...] | None = None
    """Contrasts that the user chose; ``None`` for the default."""
    sizes: tuple[str, ...] = ()
    """Factors of a study that are sizes: their levels give a scaling law."""
    layouts: tuple[Layout, ...] = ()
    """Memory layouts, of which each block has one; empty if layout is not a factor."""
    ranking: bool = True
    """Whether the conditions may also be ranked."""
    command_line: tuple[str, ...] = ()
    """Arguments that the user typed, with the seed; empty if no command was typed."""
    terms: Terms | None = None
    """Terms of the kind of campaign; ``None`` for an ordinary comparison."""
    membership: Membership | None = None
    """Membership in the run of a fleet; ``None`` for all other campaigns."""

    @property
    def kind(self) -> Kind:
        """The kind of campaign."""
        return kind_of_study(self.study) if self.terms is None else kind_named(tag_of(self.terms))

    @property
    def rules(self) -> Terms:
        """Rules of the campaign: its terms, or without terms the rules of its study."""
        return self.rules_of_study if self.terms is None else self.terms

    @property
    def rules_of_study(self) -> Terms:
        """Rules of the study, which apply in addition to the terms of a kind."""
        return kind_of_study(self.study).part("study_rules", Terms)

    @property
    def groups(self) -> tuple[tuple[Contrast, ...], ...]:
        """Contrasts, grouped by baseline and factor."""
        groups: dict[tuple[int, str | None], list[Contrast]] = {}
        for contrast in self.contrasts:
            groups.setdefault((contrast.baseline, contrast.factor), []).append(contrast)
        return tuple(map(tuple, groups.values()))

    @property
    def ranked_groups(self) -> tuple[tuple[Contrast, ...], ...]:
        """Groups of contrasts whose conditions are ranked."""
        # With layouts, verdicts hold for layouts in general; a ranking does not.
        if not self.ranking or self.layouts or not self.rules.can_rank:
            return ()
        return tuple(
            group
            for group in self.groups
            if MIN_RANKED_CONDITIONS <= len(group) + 1 <= MAX_RANKED_CONDITIONS
        )

    @property
    def adjust_by(self) -> tuple[str, ...]:
        """Covariates by which costs may be adjusted; empty if the plan does not allow it."""
        is_adjustable = self.not_adjustable_because is None
        return self.judgement.adjust_by[:MAX_COVARIATES] if is_adjustable else ()

    @property
    def not_adjustable_because(self) -> str | None:
        """Reason why costs may not be adjusted by a covariate; ``None`` if they may.

        A condition may not run anything before its covariates are read. Carry-over can be checked
        only with two conditions.
        """
        count = len(self.conditions)
        if count != 2:
            conditions = "1 condition" if count == 1 else f"{count} conditions"
            return f"{conditions} (a control counts): carry-over can be checked only between 2"
        if self.measure.washout:
            return "a washout runs before each reading and can move it"
        hooks = [condition.hooks for condition in self.conditions]
        if any(hook.setup or hook.prepare or hook.conclude for hook in hooks):
            return "a hook of a condition runs before a reading and can move it"
        if any(condition.server is not None for condition in self.conditions):
            return "a server of a condition runs before a reading and can move it"
        if self.measure.cpu_sets:
            return "trials that run at once have one reading"
        if self.layouts:
            return "the verdict over layouts rests on the layouts, not on the blocks"
        return self.rules.not_adjustable_because

    @property
    def contrasts(self) -> tuple[Contrast, ...]:
        """Contrasts of the user or the kind; by default each candidate with the first condition."""
        if self.chosen_contrasts is not None:
            return self.chosen_contrasts
        if self.terms is not None and (kind_contrasts := self.terms.contrasts(self)) is not None:
            return kind_contrasts
        return tuple(
            Contrast(0, index) for index in range(1, len(self.conditions)) if index != self.control
        )

    def names_of(self, contrast: Contrast) -> tuple[str, str]:
        """Return the names of the baseline and of the candidate of a contrast."""
        return self.conditions[contrast.baseline].name, self.conditions[contrast.candidate].name

    @property
    def describes_single_condition(self) -> bool:
        """Whether the campaign measures and describes a single condition, without a comparison."""
        return (
            not self.contrasts
            and self.rules.describes_single_condition
            and len(self.described) == 1
            and self.rules_of_study.describes_single_condition
        )

    @property
    def warmup_blocks(self) -> int:
        """Number of warm-up blocks; a program that differs between layouts is warmed up in each."""
        has_programs = any(condition.has_programs_by_layout for condition in self.conditions)
        return self.measure.warmup * (len(self.layouts) if self.layouts and has_programs else 1)

    def runs_at_once(self, phase: str, block: int) -> bool:
        """Return whether the trials of a block run at once, two by two.

        The warm-up blocks after the first `warmup_blocks` are the pilot of ``--duet``: they run in
        turns and at once, alternately.
        """
        if not self.measure.cpu_sets:
            return False
        return phase == "measured" or (block - self.warmup_blocks) % 2 == 0

    @property
    def described(self) -> tuple[int, ...]:
        """Indices of the conditions that a result shows: all but the control."""
        return tuple(index for index in range(len(self.conditions)) if index != self.control)
