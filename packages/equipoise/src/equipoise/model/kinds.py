"""Kinds of campaign: the interface of a kind, and the register with a line for each.

A campaign of an ordinary comparison has no terms beyond its plan. Every other kind is a folder with
everything that is only about it, and a `Kind` with the places of its parts; a part is imported when
it is used. Another package registers its kinds under the entry point group ``equipoise.kinds``. A
kind without terms belongs to the campaigns of one study, and has the name of that study. To take a
kind away, delete its folder and its line.
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
"""Kind of a campaign without terms."""
REGISTER: dict[str, str] = {
    "functions": "equipoise.kinds.functions",
    "gate": "equipoise.kinds.gate",
    "bisect": "equipoise.kinds.bisect",
    "history": "equipoise.kinds.history",
    "fleet": "equipoise.kinds.fleet",
    "imported": "equipoise.kinds.imported",
    "explain": "equipoise.kinds.explain",
}
"""Modules of the kinds that come with Equipoise, by name; each module has a ``KIND``."""
ENTRY_POINTS = "equipoise.kinds"
"""Group of the entry points by which other packages register kinds; each names a `Kind`."""
TAG = "kind"
"""Key of the name of a kind in stored terms and in a result document."""

Part = TypeVar("Part")


class Terms:
    """Additional terms of the plan of one kind of campaign.

    The terms of a kind are a frozen `msgspec.Struct` that inherits from this class too, tagged with
    the name of the kind: ``class GatePlan(Struct, Terms, frozen=True, tag_field=TAG, tag="gate")``.
    The values in this class are those of an ordinary comparison.
    """

    __slots__ = ()

    noun: ClassVar[str] = "comparison"
    """Noun for a campaign of this kind in messages, without an article."""
    ranks: ClassVar[bool] = True
    """Whether several conditions may be ranked."""
    describes_one: ClassVar[bool] = True
    """Whether a single condition is described."""
    may_add_washouts: ClassVar[bool] = False
    """Whether the campaign continues with washouts if carry-over could explain a difference."""
    has_random_order: ClassVar[bool] = True
    """Whether the coin ordered the trials; without it there is no verdict (rule 1)."""
    shares_processes: ClassVar[bool] = False
    """Whether all conditions of a block run in one process."""
    checks_carry_over: ClassVar[bool] = True
    """Whether differences are checked for carry-over."""
    not_adjustable_because: ClassVar[str | None] = None
    """Reason why no cost is adjusted by a covariate; ``None`` if costs may be adjusted."""
    runs_whole_blocks: ClassVar[bool] = True
    """Whether a block runs every condition that is not decided; else those needed next."""
    needs_every_cost: ClassVar[bool] = True
    """Whether every trial needs a cost; else only those of contrasts."""
    shows_every_condition: ClassVar[bool] = True
    """Whether the result has every condition; else only those that ran."""
    has_members: ClassVar[bool] = False
    """Whether the trials are those of other runs, its members."""
    rows_show_failures: ClassVar[bool] = False
    """Whether a condition's row shows why its trials failed, which makes a warning superfluous."""
    no_series: tuple[str, ...] = ()
    """Metrics whose iterations are not a course in time, so that they cannot show a warm-up."""
    decisive_sides: ClassVar[int] = 1
    """Number of sides of an interval that each have the whole alpha."""
    restart: ClassVar[str | None] = None
    """Phrase of messages for running the campaign again from its first block; ``None`` if
    `equipoise resume` continues it."""
    failure_hint: ClassVar[str | None] = None
    """Hint for a failed trial, if it differs from that for a command."""

    @property
    def command_line(self) -> str | None:
        """Command line that measures the same question again, if no command was typed."""
        return None

    @property
    def earlier(self) -> tuple[str, ...]:
        """Ids of earlier campaigns of its series, which the result needs."""
        return ()

    @property
    def member_hosts(self) -> tuple[HostReference, ...]:
        """Hosts of its members, by their places; empty without members."""
        return ()

    @property
    def mentioned(self) -> tuple[str, ...]:
        """Ids of further runs that it concerns; a ledger may lack them."""
        return ()

    def execution_order(self, order: list[int]) -> list[int]:
        """Return the order in which a block's conditions run, from the order that the coin drew."""
        return order

    def with_initial_conditions(self, plan: Plan) -> Plan:
        """Return the plan with the conditions that exist before the first block."""
        return plan

    def contrasts(self, plan: Plan) -> tuple[Contrast, ...] | None:
        """Return the contrasts; ``None`` compares each condition with the first."""
        return None

    def shared_part(self, runs: Sequence[Any]) -> Any:
        """Return the part of ``runs`` that campaigns of the same question share; by default all."""
        return runs

    def longer_hint(self, min_s: float | None) -> str | None:
        """Return a hint for measuring at least ``min_s`` seconds, if `equipoise resume` cannot."""
        return None

    def check_resumable(self, run: str) -> None:
        """Raise `UnusableInput` if a stopped campaign of this kind cannot be continued."""

    def check_explainable(self, record: RunRecord) -> None:
        """Raise `UnusableInput` if no gap of a campaign of this kind can be explained."""


class Command(Struct, frozen=True):
    """One command of the command line."""

    module: str
    """Module that has its ``command``."""
    summary: str
    """Summary, one line of ``equipoise --help``."""
    group: str
    """Heading in the list of commands."""
    after: str | None = None
    """Command that it follows in the list; by default it is the last of its group."""


class Kind(Struct, frozen=True):
    """One kind of campaign: the places of its parts, as ``module:attribute``.

    A part that is ``None`` is that of an ordinary comparison.
    """

    name: str
    """Tag of its terms and of its documents."""
    terms: str = ""
    """Its `Terms`; empty if its plans have none and name the study with the name of the kind."""
    document: str = "equipoise.model.result:ResultDocument"
    """Its `equipoise.model.result.ResultDocument`."""
    rules: str | None = None
    """`Terms` without fields, for plans without terms of their own."""
    campaign: str | None = None
    """Its `equipoise.campaign.interim.CampaignKind`: how it is judged and continues."""
    analysis: str | None = None
    """Its `equipoise.analysis.kind.AnalysisKind`: additions to the result of its comparisons."""
    report: str | None = None
    """Its `equipoise.report.kind.ReportKind`: question, answer and sections of its document."""
    figures: str | None = None
    """Its `equipoise.figures.gallery.FiguresKind`."""
    why: str | None = None
    """Its `equipoise.why.kind.WhyKind`: gaps that are explained, and how."""
    resume: str | None = None
    """Function that continues a stopped campaign: from ``(record, limits, hosts, output)`` to the
    exit status."""
    build_gap: str | None = None
    """Context manager of ``(record, gap, ledger)`` in which both conditions of a gap can run."""
    explain_gap: str | None = None
    """Function of ``(record, ledger, output)`` that explains the largest gap of a campaign."""
    on_hosts: str | None = None
    """Function that measures an ordinary plan on every host of a cluster."""
    compare_callables: str | None = None
    """Function that compares Python functions and returns their record."""
    compare_code: str | None = None
    """Function that compares pieces of Python code and returns their record."""
    commands: Mapping[str, Command] = field(default_factory=dict)
    lists: Mapping[str, str] = field(default_factory=dict)
    """Lists of `equipoise list`, by name: functions that return headings and rows."""

    def part(self, name: str, usual: type[Part]) -> Part:
        """Return a part as an object; that of an ordinary comparison if the kind has none."""
        part = _part(self.name, name)
        return part if isinstance(part, usual) else usual()


def external_kinds() -> Mapping[str, str]:
    """Return the places of the kinds that other packages register, by name."""
    return registered(ENTRY_POINTS)


def place_of(name: str) -> str | None:
    """Return the place of the `Kind` with a name; ``None`` if no installed package has it."""
    if name in REGISTER:
        return f"{REGISTER[name]}:KIND"
    return external_kinds().get(name)


@functools.cache
def kind_named(name: str) -> Kind:
    """Return the kind with a name.

    Raise `UnusableInput` if no installed package has it.
    """
    if name == ORDINARY:
        return Kind(ORDINARY)
    place = place_of(name)
    if place is None:
        raise UnusableInput(
            f"this installation has no campaigns of the kind {name!r}",
            hint="install the package that measured it, or a later Equipoise",
        )
    kind = load(place)
    assert isinstance(kind, Kind)
    return kind


def every_kind() -> tuple[Kind, ...]:
    """Return all kinds, the ordinary one first."""
    return tuple(map(kind_named, (ORDINARY, *REGISTER, *external_kinds())))


def kind_of_study(study: str) -> Kind:
    """Return the kind of a study's campaigns without terms."""
    if study != ORDINARY and study in external_kinds():
        kind = kind_named(study)
        if not kind.terms:
            return kind
    return kind_named(ORDINARY)


def provided(part: str, campaigns: str, hint: str) -> Any:
    """Return a function that one kind provides for the campaigns of all kinds.

    Raise `UnusableInput` if no installed kind has it; ``campaigns`` describes the missing
    campaigns.
    """
    places = (getattr(kind, part) for kind in every_kind())
    place = next((place for place in places if place is not None), None)
    if place is None:
        raise UnusableInput(f"this installation has no campaigns {campaigns}", hint=hint)
    return load(place)


def kind_of(part: object) -> Kind:
    """Return the kind of terms or of a document, by its tag; the ordinary one for ``None``.

    The kind of an ordinary document is that of its study.
    """
    name = ORDINARY if part is None else tag_of(part)
    run = getattr(part, "run", None) if name == ORDINARY else None
    return kind_named(name) if run is None else kind_of_study(run.study)


def tag_of(part: object) -> str:
    """Return the name of the kind of terms or of a document."""
    assert isinstance(part, Struct)
    return str(part.__struct_config__.tag)


def terms_from(kind: type, stored: Any) -> Any:
    """Read the terms of a plan, as the ``dec_hook`` of msgspec, which does not know `Terms`.

    Raise `ValueError` if they do not name a kind of an installed package.
    """
    if kind is not Terms:
        raise NotImplementedError(f"{kind.__name__} has no place in a plan")
    name = stored.get(TAG) if isinstance(stored, dict) else None
    if not isinstance(name, str) or place_of(name) is None or not kind_named(name).terms:
        raise ValueError(f"no campaigns of the kind {name!r} are known here")
    return msgspec.convert(stored, load(kind_named(name).terms), dec_hook=terms_from)


@functools.cache
def _part(kind: str, name: str) -> object:
    place = getattr(kind_named(kind), name)
    return None if place is None else load(place)()


@functools.cache
def load(place: str) -> Any:
    """Import the object named ``module:attribute``."""
    module, _, attribute = place.partition(":")
    return getattr(importlib.import_module(module), attribute)
