"""Kinds of campaign: what a kind provides, and the register in which each is one line.

A campaign of an ordinary comparison has no terms beyond its plan. Every other kind is a folder
that holds all that is only about it, and a `Kind` that says where each part is; a part is imported
when it is used. A package beside Equipoise registers its kinds under the entry point group
``equipoise.kinds``. A kind without terms is that of the campaigns of one study, whose name it has.
To take a kind away, delete its folder and its line.
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
"""The kind of a campaign without terms of its own."""
REGISTER: dict[str, str] = {
    "functions": "equipoise.kinds.functions",
    "gate": "equipoise.kinds.gate",
    "bisect": "equipoise.kinds.bisect",
    "history": "equipoise.kinds.history",
    "fleet": "equipoise.kinds.fleet",
    "imported": "equipoise.kinds.imported",
    "explain": "equipoise.kinds.explain",
}
"""Module of each kind that comes with Equipoise, by its name; the module has a ``KIND``."""
ENTRY_POINTS = "equipoise.kinds"
"""Group of the entry points by which other packages register kinds; each names a `Kind`."""
TAG = "kind"
"""Key of the name of a kind in stored terms and in a result document."""

Part = TypeVar("Part")


class Terms:
    """What the plan of one kind of campaign has beyond what every plan has.

    The terms of a kind are a frozen `msgspec.Struct` that inherits from this class too, tagged
    with the name of the kind: ``class GatePlan(Struct, Terms, frozen=True, tag_field=TAG,
    tag="gate")``. What this class says holds for an ordinary comparison.
    """

    __slots__ = ()

    noun: ClassVar[str] = "comparison"
    """Noun for a campaign of this kind in messages, without an article."""
    ranks: ClassVar[bool] = True
    """Whether the fastest of several conditions may be asked for."""
    describes_one: ClassVar[bool] = True
    """Whether one condition alone is described."""
    goes_on_with_washouts: ClassVar[bool] = False
    """Whether the campaign goes on with washouts where carry-over could make a difference."""
    has_random_order: ClassVar[bool] = True
    """Whether the coin ordered the trials; without it there is no verdict (rule 1)."""
    shares_processes: ClassVar[bool] = False
    """Whether all conditions of a block run in one process."""
    checks_carry_over: ClassVar[bool] = True
    """Whether it is checked if carry-over could make a difference."""
    not_adjustable_because: ClassVar[str | None] = None
    """Reason why no cost is adjusted by a covariate; ``None`` where it may be."""
    runs_whole_blocks: ClassVar[bool] = True
    """Whether a block runs every condition that is not decided; else what is asked next."""
    needs_every_cost: ClassVar[bool] = True
    """Whether every trial needs a cost; else those of contrasts alone."""
    shows_every_condition: ClassVar[bool] = True
    """Whether the result has each condition; else those that ran."""
    has_members: ClassVar[bool] = False
    """Whether the trials are those of other runs, which are its parts."""
    rows_say_failures: ClassVar[bool] = False
    """Whether the row of a condition says why its trials failed, so that no warning has to."""
    no_series: tuple[str, ...] = ()
    """Metrics whose iterations are no course in time, so that no warm-up is looked for in them."""
    decisive_sides: ClassVar[int] = 1
    """Sides of an interval of which each has alpha for itself."""
    restart: ClassVar[str | None] = None
    """How a message says that the campaign is run again from its first block; ``None`` where
    `equipoise resume` continues it."""
    failure_hint: ClassVar[str | None] = None
    """What to do about a trial that failed, if not what is said of a command."""

    @property
    def command_line(self) -> str | None:
        """The line that asks the same question again, where no command was typed."""
        return None

    @property
    def earlier(self) -> tuple[str, ...]:
        """Ids of earlier campaigns of its series, without which there is no result."""
        return ()

    @property
    def member_hosts(self) -> tuple[HostReference, ...]:
        """Hosts whose runs are its parts, by their places; none if it has no parts."""
        return ()

    @property
    def mentioned(self) -> tuple[str, ...]:
        """Ids of further runs that it is about; a ledger may lack them."""
        return ()

    def arranged(self, order: list[int]) -> list[int]:
        """Return the conditions of a block as they run, out of the order that the coin drew."""
        return order

    def built_before(self, plan: Plan) -> Plan:
        """Return the plan with the conditions that are there before the first block."""
        return plan

    def contrasts(self, plan: Plan) -> tuple[Contrast, ...] | None:
        """Return what is compared; ``None`` for each condition with the first."""
        return None

    def what_runs(self, runs: Sequence[Any]) -> Any:
        """Return what campaigns of the same question have in common; ``runs`` by default."""
        return runs

    def longer_hint(self, min_s: float | None) -> str | None:
        """Return how to measure longer, at least so many seconds, where no command goes on."""
        return None

    def check_resumable(self, run: str) -> None:
        """Raise `UnusableInput` if a stopped campaign of this kind cannot be continued."""

    def check_explainable(self, record: RunRecord) -> None:
        """Raise `UnusableInput` if no gap of a campaign of this kind can be explained."""


class Command(Struct, frozen=True):
    """One command of the command line."""

    module: str
    """Module whose ``command`` it is."""
    summary: str
    """One line of ``equipoise --help``."""
    group: str
    """Heading of the list of commands under which it stands."""
    after: str | None = None
    """Command behind which it stands; by default it is the last of its group."""


class Kind(Struct, frozen=True):
    """One kind of campaign: where each of its parts is, as ``module:attribute``.

    A part that is ``None`` is as in an ordinary comparison.
    """

    name: str
    """Tag of its terms and of its documents."""
    terms: str = ""
    """Its `Terms`; empty if its plans have none, and name a study of its own name instead."""
    document: str = "equipoise.model.result:ResultDocument"
    """Its `equipoise.model.result.ResultDocument`."""
    rules: str | None = None
    """`Terms` without fields: what holds for its plans, if they have no terms."""
    campaign: str | None = None
    """Its `equipoise.campaign.interim.CampaignKind`: how it is judged, and goes on."""
    analysis: str | None = None
    """Its `equipoise.analysis.kind.AnalysisKind`: what its result has beyond comparisons."""
    report: str | None = None
    """Its `equipoise.report.kind.ReportKind`: question, answer and sections of its document."""
    figures: str | None = None
    """Its `equipoise.figures.gallery.FiguresKind`."""
    why: str | None = None
    """Its `equipoise.why.kind.WhyKind`: which gaps of it are explained, and how."""
    resume: str | None = None
    """Function that goes on with a stopped campaign: ``(record, limits, hosts, output)`` in, the
    exit status out."""
    build_gap: str | None = None
    """Context manager in which both conditions of a gap can run: ``(record, gap, ledger)`` in."""
    explain_gap: str | None = None
    """Function that explains the largest gap of a campaign: ``(record, ledger, output)`` in."""
    on_hosts: str | None = None
    """Function that measures an ordinary plan on every host of a cluster."""
    compare_callables: str | None = None
    """Function that compares Python functions: their record out."""
    compare_code: str | None = None
    """Function that compares pieces of Python code: their record out."""
    commands: Mapping[str, Command] = field(default_factory=dict)
    lists: Mapping[str, str] = field(default_factory=dict)
    """What `equipoise list` can list of it: by name, a function that returns the headings and the
    rows."""

    def part(self, name: str, usual: type[Part]) -> Part:
        """Return a part as an object; that of an ordinary comparison if the kind has none."""
        part = _part(self.name, name)
        return part if isinstance(part, usual) else usual()


def of_other_packages() -> Mapping[str, str]:
    """Return the place of each kind that another package registers, by its name."""
    return registered(ENTRY_POINTS)


def place_of(name: str) -> str | None:
    """Return where the `Kind` of a name is; ``None`` if no installed package has it."""
    if name in REGISTER:
        return f"{REGISTER[name]}:KIND"
    return of_other_packages().get(name)


@functools.cache
def kind_named(name: str) -> Kind:
    """Return the kind of a name.

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
    return tuple(map(kind_named, (ORDINARY, *REGISTER, *of_other_packages())))


def kind_of_study(study: str) -> Kind:
    """Return the kind of the campaigns of a study that have no terms."""
    if study != ORDINARY and study in of_other_packages():
        kind = kind_named(study)
        if not kind.terms:
            return kind
    return kind_named(ORDINARY)


def provided(part: str, campaigns: str, hint: str) -> Any:
    """Return the function that a kind has for the campaigns of all kinds.

    Raise `UnusableInput` if no installed kind has it; ``campaigns`` says which those would be.
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
    """Read the terms of a plan: the ``dec_hook`` of msgspec, which knows no `Terms`.

    Raise `ValueError` if they name no kind, or one that no installed package has.
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
    """Import what ``module:attribute`` names."""
    module, _, attribute = place.partition(":")
    return getattr(importlib.import_module(module), attribute)
