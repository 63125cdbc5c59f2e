"""Kinds of campaign: the interface of a kind, and the register of all kinds.

A kind is a type of campaign, such as a gate or a bisection; the ordinary kind is a comparison. The
*terms* of a kind are its data in a plan. Their class has the *rules*: how such a campaign differs
from a comparison. A study can have rules without terms; then the kind has the study's name.

All code that only one kind needs is in the folder of the kind. A `Kind` lists the import paths of
its parts; a part is imported when it is first used. Other packages register their kinds by entry
points. To remove a kind, delete its folder and its line in `REGISTER`.
"""

from __future__ import annotations

import functools
import importlib
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, ClassVar, TypeVar

import msgspec
from msgspec import Struct, field

from equipoise.model.errors import UnusableInput
from equipoise.model.packages import registered

if TYPE_CHECKING:
    from equipoise.model.host import HostReference
    from equipoise.model.plan import Contrast, Plan
    from equipoise.model.record import RunRecord

ORDINARY = "compare"
"""Name of the kind of a campaign without terms."""
REGISTER: dict[str, str] = {
    "functions": "equipoise.kinds.functions",
    "gate": "equipoise.kinds.gate",
    "bisect": "equipoise.kinds.bisect",
    "history": "equipoise.kinds.history",
    "verify": "equipoise.kinds.verify",
    "fleet": "equipoise.kinds.fleet",
    "imported": "equipoise.kinds.imported",
    "explain": "equipoise.kinds.explain",
}
"""Modules of the kinds that come with Equipoise, by name; each defines ``KIND``."""
ENTRY_POINTS = "equipoise.kinds"
"""Group of the entry points by which other packages register kinds; each names a `Kind`."""
TAG = "kind"
"""Key under which stored terms and result documents have the name of their kind."""

Part = TypeVar("Part")


class Terms:
    """Rules of an ordinary comparison, and base class of the terms of each other kind.

    Terms are a frozen `msgspec.Struct`, tagged with the name of the kind:
    ``class GatePlan(Struct, Terms, frozen=True, tag_field=TAG, tag="gate")``.
    """

    __slots__ = ()

    noun: ClassVar[str] = "comparison"
    """Noun for a campaign of this kind in messages, without an article, such as ``gate``."""
    can_rank: ClassVar[bool] = True
    """Whether the result may rank the conditions."""
    describes_single_condition: ClassVar[bool] = True
    """Whether a campaign with a single condition gives a description of that condition."""
    may_add_washouts: ClassVar[bool] = False
    """Whether the campaign continues with washouts if carry-over could explain a difference."""
    has_random_order: ClassVar[bool] = True
    """Whether the order of the trials was drawn at random; if not, there is no verdict (rule 1)."""
    checks_carry_over: ClassVar[bool] = True
    """Whether differences are checked for carry-over."""
    not_adjustable_because: ClassVar[str | None] = None
    """Reason why costs are not adjusted for covariates; ``None`` if costs may be adjusted."""
    runs_whole_blocks: ClassVar[bool] = True
    """Whether a block runs every undecided condition, or only those that are needed next."""
    needs_every_cost: ClassVar[bool] = True
    """Whether every trial needs a cost; if not, only the trials of contrasts need one."""
    shows_every_condition: ClassVar[bool] = True
    """Whether the result shows every condition; if not, only the conditions that ran."""
    has_members: ClassVar[bool] = False
    """Whether the campaign consists of other runs, its members, and has no trials of its own."""
    rows_show_failures: ClassVar[bool] = False
    """Whether the row of a condition shows why its trials failed, so that no warning is needed."""
    metrics_without_time_order: tuple[str, ...] = ()
    """Metrics whose iterations are not a series in time, so that they cannot show a warm-up."""
    alpha_factor: ClassVar[int] = 1
    """2 if each side of an interval may use the whole alpha, 1 if the two sides share alpha."""
    restart_hint: ClassVar[str | None] = None
    """Hint for a campaign that cannot be resumed, such as ``run the gate again``; else ``None``."""
    failure_hint: ClassVar[str | None] = None
    """Hint for a failed trial; ``None`` for the hint of an ordinary comparison."""

    @property
    def shares_processes(self) -> bool:
        """Whether the conditions that are compared run in one process."""
        return False

    @property
    def command_line(self) -> str | None:
        """Command line that repeats the campaign, for a plan that no command created."""
        return None

    @property
    def earlier_ids(self) -> tuple[str, ...]:
        """Ids of earlier campaigns in the same series, without which there is no result."""
        return ()

    @property
    def member_hosts(self) -> tuple[HostReference, ...]:
        """Host of each member, in the order of the members; empty without members."""
        return ()

    @property
    def referenced_runs(self) -> tuple[str, ...]:
        """Ids of other runs to which the terms refer; a ledger may lack these runs."""
        return ()

    def execution_order(self, order: list[int]) -> list[int]:
        """Return the order in which a block's conditions run, from the order drawn at random."""
        return order

    def with_initial_conditions(self, plan: Plan) -> Plan:
        """Return the plan with the conditions that exist before the first block."""
        return plan

    def contrasts(self, plan: Plan) -> tuple[Contrast, ...] | None:
        """Return the contrasts; ``None`` compares each condition with the first."""
        return None

    def workloads_for_digest(self, workloads: Sequence[Any]) -> Any:
        """Return the data whose digest tells whether two campaigns ran the same workloads."""
        return workloads

    def hint_to_measure_longer(self, min_s: float | None) -> str | None:
        """Return a hint for measuring longer; ``None`` for the default hint, `equipoise resume`.

        ``min_s`` is the number of seconds that would suffice; ``None`` if this is unknown.
        """
        return None

    def check_resumable(self, run: str) -> None:
        """Raise `UnusableInput` if a stopped campaign of this kind cannot be continued."""

    def check_explainable(self, record: RunRecord) -> None:
        """Raise `UnusableInput` if no gap of a campaign of this kind can be explained."""


class Command(Struct, frozen=True):
    """One command of the command line."""

    module: str
    """Import path of a module that has the command as its attribute ``command``."""
    summary: str
    """Summary, one line of ``equipoise --help``."""
    group: str
    """Heading above the command in the list of commands."""
    after: str | None = None
    """Command after which this command is listed; by default it is the last of its group."""


class Kind(Struct, frozen=True):
    """One kind of campaign, with the import paths of its parts as ``module:attribute``.

    If a part is ``None``, the kind uses the part of an ordinary comparison.
    """

    name: str
    """Name of the kind, which tags its terms and its documents."""
    terms: str = ""
    """Subclass of `Terms` in the plans of this kind; empty for a kind without terms."""
    document: str = "equipoise.model.result:ResultDocument"
    """Class of the kind's documents."""
    study_rules: str | None = None
    """Subclass of `Terms` without fields: the rules of a kind without terms."""
    campaign: str | None = None
    """An `equipoise.campaign.interim.CampaignKind`: how a campaign is judged and continues."""
    analysis: str | None = None
    """An `equipoise.analysis.kind.AnalysisKind`: additions to the result of comparisons."""
    report: str | None = None
    """An `equipoise.report.kind.KindReport`: question, answer and sections of a document."""
    figures: str | None = None
    """An `equipoise.figures.gallery.KindFigures`: the charts."""
    why: str | None = None
    """An `equipoise.why.kind.WhyKind`: which gaps are explained, and how."""
    resume: str | None = None
    """Function of ``(record, limits, hosts, output)`` that continues a stopped campaign and returns
    an exit status."""
    build_commits_of_gap: str | None = None
    """Context manager from ``(record, gap, ledger)`` in which both conditions of a gap can run."""
    explain_gap: str | None = None
    """Function of ``(record, ledger, output)`` that explains the largest gap of a campaign."""
    measure_on_hosts: str | None = None
    """Function that measures an ordinary plan on every host of a cluster."""
    compare_callables: str | None = None
    """Function that compares Python functions and returns the record of the campaign."""
    compare_code: str | None = None
    """Function that compares pieces of Python code and returns the record of the campaign."""
    commands: Mapping[str, Command] = field(default_factory=dict)
    """Commands that the kind adds, by name."""
    lists: Mapping[str, str] = field(default_factory=dict)
    """Lists of `equipoise list`, by name: functions that return headings and rows."""

    def part(self, name: str, default: type[Part]) -> Part:
        """Return an instance of a part; without this part, an instance of the default class."""
        part = _part(self.name, name)
        return part if isinstance(part, default) else default()


def external_kinds() -> Mapping[str, str]:
    """Return the import paths of the kinds that other packages register, by name."""
    return registered(ENTRY_POINTS)


def import_path_of(name: str) -> str | None:
    """Return the import path of the `Kind` with a name; ``None`` if no package has this kind."""
    if name in REGISTER:
        return f"{REGISTER[name]}:KIND"
    return external_kinds().get(name)


@functools.cache
def kind_named(name: str) -> Kind:
    """Return the kind with a name; raise `UnusableInput` if no installed package has it."""
    if name == ORDINARY:
        return Kind(ORDINARY)
    import_path = import_path_of(name)
    if import_path is None:
        raise UnusableInput(
            f"this installation cannot read campaigns of the kind {name!r}",
            hint="install the package that adds this kind, or a later version of Equipoise",
        )
    kind = load(import_path)
    assert isinstance(kind, Kind)
    return kind


def every_kind() -> tuple[Kind, ...]:
    """Return all kinds, the ordinary kind first."""
    return tuple(map(kind_named, (ORDINARY, *REGISTER, *external_kinds())))


def kind_of_study(study: str) -> Kind:
    """Return the kind with the name of a study; the ordinary kind if there is none."""
    if study != ORDINARY and study in external_kinds():
        kind = kind_named(study)
        if not kind.terms:
            return kind
    return kind_named(ORDINARY)


def load_part(name: str, purpose: str, alternative: str) -> Any:
    """Return a part that only one kind has, and that campaigns of all kinds use.

    Raise `UnusableInput` if no installed kind has this part. ``purpose`` names the campaigns in the
    message, for example ``that test causes``. ``alternative`` is an action without the part.
    """
    import_paths = (getattr(kind, name) for kind in every_kind())
    import_path = next(filter(None, import_paths), None)
    if import_path is None:
        raise UnusableInput(
            f"the files of Equipoise for campaigns {purpose} are not installed",
            hint=f"install the package equipoise again, or {alternative}",
        )
    return load(import_path)


def kind_of(terms_or_document: object) -> Kind:
    """Return the kind of terms or of a document, by the tag; the ordinary kind for ``None``.

    If a document has the ordinary tag, its study decides.
    """
    name = ORDINARY if terms_or_document is None else tag_of(terms_or_document)
    run = getattr(terms_or_document, "run", None) if name == ORDINARY else None
    return kind_named(name) if run is None else kind_of_study(run.study)


def tag_of(terms_or_document: object) -> str:
    """Return the tag of terms or of a document, which is the name of their kind."""
    assert isinstance(terms_or_document, Struct)
    return str(terms_or_document.__struct_config__.tag)


def terms_from(expected_type: type, stored: Any) -> Any:
    """Read the terms of a plan; this is the ``dec_hook`` that msgspec calls for `Terms`.

    Raise `ValueError` if the stored terms do not name a kind of an installed package.
    """
    if expected_type is not Terms:
        raise NotImplementedError(f"a plan cannot contain {expected_type.__name__}")
    name = stored.get(TAG) if isinstance(stored, dict) else None
    if not isinstance(name, str) or import_path_of(name) is None or not kind_named(name).terms:
        raise ValueError(f"no installed package has campaigns of the kind {name!r}")
    return msgspec.convert(stored, load(kind_named(name).terms), dec_hook=terms_from)


@functools.cache
def _part(kind_name: str, part_name: str) -> object:
    import_path = getattr(kind_named(kind_name), part_name)
    return None if import_path is None else load(import_path)()


@functools.cache
def load(import_path: str) -> Any:
    """Import the object with the import path ``module:attribute``."""
    module, _, attribute = import_path.partition(":")
    return getattr(importlib.import_module(module), attribute)
