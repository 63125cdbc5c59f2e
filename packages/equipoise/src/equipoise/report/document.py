"""One model of a report: the question, the answer, and everything else in reading order.

A builder turns a result of one kind into a `Document`; a renderer writes any document in one form.
All text is plain: each renderer escapes it. What one form shows and another does not is said by
the ``forms`` of a part, never by a renderer.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import chain
from typing import TYPE_CHECKING, Any, Literal, Protocol, TypeVar

from msgspec import Struct, field
from msgspec.structs import force_setattr, replace

from equipoise.model.quantities import Interval
from equipoise.shared.safe_text import MAX_LINE_LETTERS, shortened

if TYPE_CHECKING:
    from equipoise.figures.gallery import Figure

Form = Literal["screen", "verbose", "page", "text", "notebook"]
"""Terminal, terminal with ``--verbose``, HTML page, text for a pull request or a paper, or a piece
of a notebook."""
Forms = frozenset[Form]
BRIEF: Forms = frozenset({"screen"})
"""A terminal without ``--verbose``."""
VERBOSE: Forms = frozenset({"verbose"})
SCREEN: Forms = BRIEF | VERBOSE
"""A terminal in any case."""
PAGE: Forms = frozenset({"page"})
TEXT: Forms = frozenset({"text", "notebook"})
WRITTEN: Forms = PAGE | TEXT
"""Every form but the terminal."""
WITH_PICTURES: Forms = frozenset({"page", "text"})
"""Forms that can show figures."""
EVERYWHERE: Forms = SCREEN | PAGE | TEXT

UNKNOWN = "–"
"""Stands in a table cell for a number that is not known."""
MAX_CLAIMS = 3
"""Number of claims that are sentences; more of them become a table."""
MAX_ALIKE = 3
"""Number of lines of one kind that the terminal and text forms show."""

Number = str | float | None
"""Value of a cell in the table of numbers (CSV)."""
NumberRow = dict[str, Number]


class Styled(Struct, frozen=True):
    """Text of a cell with a style."""

    text: str
    style: str = ""
    """Empty, ``strong``, ``dim``, ``caution``, or a tone: a verdict whose colour the text has."""


class Name(Struct, frozen=True):
    """Name of a condition with its colour in the figures and its command."""

    text: str
    color: str = ""
    command: str = ""
    """Empty where the name is the command."""


class Histogram(Struct, frozen=True):
    """Distribution of values, which a terminal draws in one line."""

    values: Sequence[float]
    low: float
    high: float
    ends: tuple[str, str]
    """Least and greatest value as text."""

    @property
    def text(self) -> str:
        """Range of the values, for forms that draw no histogram."""
        return " to ".join(self.ends)


Cell = str | Styled | Name | Histogram
Row = tuple[Cell, ...]


def text_of(cell: Cell) -> str:
    """Return the plain text of a cell."""
    return cell if isinstance(cell, str) else cell.text


Kind = Literal["name", "number", "label", "words", "id"]
"""``name``: shortened if too long; ``number``: to the right; ``words``: broken into lines; ``id``:
never shortened, since a reader copies it."""


class Column(Struct, frozen=True):
    """Heading of a column and how its cells are set."""

    heading: str
    kind: Kind = "label"


HeadedCells = Sequence[tuple[str, Cell]]
"""Cells of a row, each with the heading of its column (`headed`)."""


def columns_and_rows(
    rows: Iterable[Mapping[str, Cell] | HeadedCells],
) -> tuple[tuple[Column, ...], tuple[Row, ...]]:
    """Return the columns and the rows of a table from rows that name the heading of each cell.

    A heading ends in ``:name``, ``:number``, ``:words`` or ``:id`` where its cells are not labels;
    one that somebody named always does. The longest row has all headings: a row of one cell is a
    heading for the rows below it.
    """
    cells = [tuple(row.items() if isinstance(row, Mapping) else row) for row in rows]
    columns = (heading.rpartition(":") for heading, _ in max(cells, key=len, default=()))
    return (
        tuple(Column(name, _KINDS[kind]) if at else Column(kind) for name, at, kind in columns),
        tuple(tuple(cell for _, cell in row) for row in cells),
    )


_KINDS: Mapping[str, Kind] = {
    "name": "name",
    "number": "number",
    "words": "words",
    "id": "id",
}


class AnyPart(Struct, frozen=True, kw_only=True):
    """Fields that every part of a document has."""

    forms: Forms = EVERYWHERE

    @property
    def kind(self) -> str:
        """Name of the kind of part, for the page's template."""
        return type(self).__name__.lower()


class PagePart(AnyPart, frozen=True, kw_only=True):
    """A part that only a page shows, unless its ``forms`` are set."""

    forms: Forms = PAGE


class Table(AnyPart, frozen=True):
    """Rows under headings; a row of one cell is a heading for the rows below it."""

    columns: tuple[Column, ...]
    rows: tuple[Row, ...]
    title: str = ""
    label: str = ""
    """Accessible name where no title is shown."""
    notes: tuple[str, ...] = ()
    max_rows: int | None = None
    """Number of rows that a terminal shows."""

    @property
    def headings(self) -> tuple[str, ...]:
        """Headings of the columns."""
        return tuple(column.heading for column in self.columns)


class Paragraph(AnyPart, frozen=True):
    """One sentence or a few."""

    text: str
    style: str = ""


class Bullets(AnyPart, frozen=True):
    """List of sentences."""

    items: tuple[str, ...]
    style: str = ""
    max_items: int | None = None
    """Number of items that a terminal shows."""


class Facts(AnyPart, frozen=True):
    """Names and their values."""

    pairs: tuple[tuple[str | Name, str | tuple[str, ...]], ...]
    """A value of several texts has a line for each."""

    def texts(self, joint: str) -> Iterator[tuple[str, str]]:
        """Yield the names and values as plain text, with the lines of a value joined."""
        for name, value in self.pairs:
            yield text_of(name), value if isinstance(value, str) else joint.join(value)


class Command(AnyPart, frozen=True):
    """Command line to copy."""

    line: str
    purpose: str
    """Purpose of the line, as the sentence before it; ends in a colon."""

    def __post_init__(self) -> None:
        """Cut a purpose that is too long; the line stays whole, because it is copied."""
        force_setattr(self, "purpose", shortened(self.purpose, MAX_LINE_LETTERS))


class Listing(AnyPart, frozen=True):
    """Lines of a file or of a patch, as they are."""

    lines: tuple[str, ...]


class ShownWarning(Protocol):
    """A warning of a campaign, of its host or of an analysis, as a report shows it."""

    @property
    def code(self) -> str:
        """Name of the kind of warning."""

    @property
    def summary(self) -> str:
        """Problem that the warning is about."""

    @property
    def hint(self) -> str:
        """Remedy for the problem; empty where there is none."""


class Warnings(AnyPart, frozen=True):
    """Warnings, each with its hint."""

    warnings: tuple[ShownWarning, ...]
    badge: str = "warning"
    """Word before each warning on a terminal; also the name of its style."""
    max_alike: int = MAX_ALIKE
    """Number of warnings of one code that the terminal and text forms show."""

    @property
    def first_of_each_code(self) -> tuple[ShownWarning, ...]:
        """At most ``max_alike`` warnings of each code."""
        by_code: dict[str, list[ShownWarning]] = {}
        for warning in self.warnings:
            by_code.setdefault(warning.code, []).append(warning)
        return tuple(chain.from_iterable(alike[: self.max_alike] for alike in by_code.values()))

    @property
    def more(self) -> int:
        """Number of warnings that the terminal and text forms leave out."""
        return len(self.warnings) - len(self.first_of_each_code)


class Figures(PagePart, frozen=True):
    """Charts that are drawn when a renderer asks for them."""

    draw: Callable[[], Iterable[Figure]]
    title: str = "Figures"
    not_on_paper: frozenset[str] = frozenset()
    """Kinds of figures that paper leaves out; the page has them."""

    def figures(self) -> tuple[Figure, ...]:
        """Draw them, without checking each part of a chart against the schema of Vega-Lite.

        The check takes two thirds of the time; the tests of figures make it.
        """
        from altair.utils.schemapi import debug_mode

        with debug_mode(False):
            return tuple(self.draw())


class FlameGraph(PagePart, frozen=True):
    """Flame graph of both conditions as SVG."""

    svg: bytes


class Strip(Struct, frozen=True):
    """Interval of a ratio on a line around "no difference"; places in percent of the width."""

    no_difference: float
    negligible: tuple[float, float]
    """Begin and width of what is too small to matter."""
    interval: tuple[float, float]
    """Begin and width."""
    open_low: bool
    open_high: bool
    estimate: float | None
    name_low: str
    name_high: str
    """Words at the ends of the line; empty where there is no room next to that of no difference."""
    description: str


class Claim(Struct, frozen=True):
    """One statement that the result makes: a verdict, or what an analysis found."""

    badge: str
    """Kind of the statement in a word or two."""
    tone: str
    """Verdict whose colour the claim has."""
    text: str
    subject: str = ""
    """Quantity that the estimate is of."""
    estimate: str = ""
    interval: str = ""
    """Interval with its coverage; empty where there is none."""
    strip: Strip | None = None
    because: str = ""
    """Cause of the difference, as far as one was looked for."""
    remarks: tuple[str, ...] = ()
    """Remarks that a reader needs with the claim, a sentence each."""
    certainty: tuple[str, ...] = ()
    """How sure the claim is, in lines for a terminal."""
    facts: tuple[tuple[str, str], ...] = ()


class Claims(PagePart, frozen=True):
    """Claims that are too many for the first screen."""

    claims: tuple[Claim, ...]


class Answer(AnyPart, frozen=True):
    """The part that a reader sees first."""

    title: str
    """Sentence above the claims; empty where the first claim is the answer itself."""
    lines: tuple[str, ...] = ()
    claims: tuple[Claim, ...] = ()
    tiles: tuple[tuple[str, str], ...] = ()
    """A name and its value each, for a page."""
    warnings: int = 0
    """Number of warnings, for a link to them."""


class Section(AnyPart, frozen=True):
    """Parts under a heading."""

    title: str
    parts: tuple[Part, ...]
    folded: bool = False
    """Whether a page shows the parts only when the reader opens them."""
    on_paper: bool = True
    """Whether the section is printed."""


ScreenPart = TypeVar("ScreenPart", bound=AnyPart)
Part = (
    Answer
    | Section
    | Table
    | Paragraph
    | Bullets
    | Facts
    | Command
    | Listing
    | Warnings
    | Figures
    | FlameGraph
    | Claims
)


class Origin(Struct, frozen=True):
    """Origin of a result, which a page shows before its answer."""

    question: str
    command: str
    """Command line that asks it again; empty where there is none."""
    when: str = ""
    """Empty where it is not known yet."""
    machine: str = ""


class Document(Struct, frozen=True):
    """One result of any kind, ready for every form."""

    name: str
    """Id that tells documents of the same title apart."""
    title: str
    """The answer or the question, in a few words."""
    parts: tuple[Part, ...]
    numbers: tuple[NumberRow, ...] = field(default=())
    """The same for other programs, a row each; a key that a row lacks is unknown there."""
    origin: Origin | None = None


def whole_and_brief(whole: ScreenPart, brief: ScreenPart) -> tuple[ScreenPart, ScreenPart]:
    """Return a part, and its replacement on a terminal without ``--verbose``."""
    return replace(whole, forms=whole.forms - BRIEF), replace(brief, forms=BRIEF)


def computation_parts(method: Iterable[str], command: str) -> Iterator[Part]:
    """Build how a result was computed, and the command that computes it again if there is one."""
    yield Section("How it was computed", tuple(map(Paragraph, method)), forms=WRITTEN)
    if command:
        yield Section("Do it again", (Command(command, "Again:"),), forms=WRITTEN)


def parts_in(parts: Iterable[Part], form: Form) -> tuple[Part, ...]:
    """Return the parts that a form shows, in order; a section without any is left out."""
    in_form = (
        replace(part, parts=parts_in(part.parts, form)) if isinstance(part, Section) else part
        for part in parts
        if form in part.forms
    )
    return tuple(part for part in in_form if not isinstance(part, Section) or part.parts)


def figures_of(document: Document) -> Iterator[Figure]:
    """Draw every figure of a document, in reading order."""
    for part in _flat(document.parts):
        if isinstance(part, Figures):
            yield from part.figures()


def fields_of(part: object, *names: str) -> NumberRow:
    """Return fields of a part of a result as numbers; what it does not have is unknown."""
    return {name: getattr(part, name, None) for name in names}


def with_interval(name: str, value: float | None, interval: Interval | None) -> NumberRow:
    """Return a value and the ends of its interval under a name, ``_low`` and ``_high``."""
    low, high = interval or (None, None)
    return {name: value, f"{name}_low": low, f"{name}_high": high}


def ratio_numbers(part: Any) -> NumberRow:
    """Return a ratio with its interval and its level as numbers; all unknown without a part."""
    ratio, interval = getattr(part, "ratio", None), getattr(part, "ratio_ci", None)
    return {**with_interval("ratio", ratio, interval), **fields_of(part, "level")}


def _flat(parts: Iterable[Part]) -> Iterator[Part]:
    for part in parts:
        yield part
        if isinstance(part, Section):
            yield from _flat(part.parts)
