"""The document model of reports: a `Document` is a list of parts in reading order.

A builder turns a result of one kind into a document. A renderer writes any document in one form,
such as a terminal or a page. Each part lists the forms that show it; the constants from
`BRIEF_TERMINAL` to `EVERYWHERE` are such lists. Texts are plain: each renderer escapes them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import chain
from typing import TYPE_CHECKING, Any, Literal, Protocol, TypeVar, get_args

from msgspec import Struct, field
from msgspec.structs import force_setattr, replace

from equipoise.model.quantities import Interval
from equipoise.shared.safe_text import MAX_LINE_LETTERS, shortened

if TYPE_CHECKING:
    from equipoise.figures.gallery import Figure

Form = Literal["brief", "verbose", "page", "text", "notebook"]
"""Form of a written document: ``brief`` is a terminal, ``verbose`` a terminal with ``--verbose``,
``page`` an HTML page, ``text`` Markdown or LaTeX, and ``notebook`` a piece of HTML."""
Forms = frozenset[Form]
BRIEF_TERMINAL: Forms = frozenset({"brief"})
VERBOSE_TERMINAL: Forms = frozenset({"verbose"})
TERMINAL: Forms = BRIEF_TERMINAL | VERBOSE_TERMINAL
PAGE: Forms = frozenset({"page"})
TEXT_AND_NOTEBOOK: Forms = frozenset({"text", "notebook"})
PAGE_AND_TEXT: Forms = frozenset({"page", "text"})
"""Forms that can show figures."""
NOT_TERMINAL: Forms = PAGE | TEXT_AND_NOTEBOOK
NOT_BRIEF: Forms = VERBOSE_TERMINAL | NOT_TERMINAL
EVERYWHERE: Forms = TERMINAL | NOT_TERMINAL

UNKNOWN = "–"
"""Text of a table cell whose value is unknown."""
MAX_STATEMENTS = 3
"""Maximum number of statements in an answer; more statements become a table."""
MAX_SIMILAR_LINES = 3
"""Maximum number of similar lines on a terminal or in a text, such as warnings of one kind."""

CsvValue = str | float | None
"""Value of a cell in the CSV table; ``None`` if it is unknown."""
CsvRow = dict[str, CsvValue]
"""Row of the CSV table: values by column. If a column is missing, its value is unknown."""


class StyledText(Struct, frozen=True):
    """Text of a table cell with a style."""

    text: str
    style: str = ""
    """Empty, ``strong``, ``dim``, ``caution``, or a verdict; a verdict has its own colour."""


class ConditionName(Struct, frozen=True):
    """Name of a condition with its colour in the figures and its command."""

    text: str
    color: str = ""
    """Colour of the condition in the figures; empty if it has none."""
    command: str = ""
    """Empty if the name already is the command."""


class Histogram(Struct, frozen=True):
    """Histogram of values, which a terminal draws in one line."""

    values: Sequence[float]
    minimum: float
    maximum: float
    end_labels: tuple[str, str]
    """The minimum and the maximum as texts."""

    @property
    def text(self) -> str:
        """Range of the values, for forms without histograms."""
        return " to ".join(self.end_labels)


Cell = str | StyledText | ConditionName | Histogram
"""Content of a table cell."""
Row = tuple[Cell, ...]


def text_of(cell: Cell) -> str:
    """Return the plain text of a cell."""
    return cell if isinstance(cell, str) else cell.text


ColumnKind = Literal["name", "number", "label", "text", "id"]
"""Layout of the cells in a column: ``name`` is shortened if too long, ``number`` is aligned to the
right, ``text`` is broken into lines, ``id`` is never shortened (readers copy it), and ``label`` is
any other text."""


class Column(Struct, frozen=True):
    """Heading of a table column, and the layout of its cells."""

    heading: str
    kind: ColumnKind = "label"


HeadedCells = Sequence[tuple[str, Cell]]
"""Cells of a row, each with the heading of its column; see `columns_and_rows`."""


def columns_and_rows(
    rows: Iterable[Mapping[str, Cell] | HeadedCells],
) -> tuple[tuple[Column, ...], tuple[Row, ...]]:
    """Return the columns and the rows of a table whose rows have a heading for each cell.

    A heading may end in a suffix with the kind of its column, such as ``:number``. A heading with
    text of a user needs a suffix, because the text may contain a colon. The table has the headings
    of the longest row.
    """
    cells = [tuple(row.items() if isinstance(row, Mapping) else row) for row in rows]
    columns = (heading.rpartition(":") for heading, _ in max(cells, key=len, default=()))
    return (
        tuple(
            Column(name, _COLUMN_KINDS[suffix]) if colon else Column(suffix)
            for name, colon, suffix in columns
        ),
        tuple(tuple(cell for _, cell in row) for row in cells),
    )


_COLUMN_KINDS: Mapping[str, ColumnKind] = {kind: kind for kind in get_args(ColumnKind)}
"""Kinds of columns by the suffix of a heading."""


class BasePart(Struct, frozen=True, kw_only=True):
    """Base class of all parts of a document."""

    forms: Forms = EVERYWHERE
    """Forms that show the part."""

    @property
    def kind(self) -> str:
        """Name of the part's class in lower case, for the template of the page."""
        return type(self).__name__.lower()


class PagePart(BasePart, frozen=True, kw_only=True):
    """Part that, by default, only a page shows."""

    forms: Forms = PAGE


class Table(BasePart, frozen=True):
    """Table; a row with a single cell is a heading for the rows below."""

    columns: tuple[Column, ...]
    rows: tuple[Row, ...]
    title: str = ""
    label: str = ""
    """Name for screen readers, for a table without a title."""
    notes: tuple[str, ...] = ()
    max_rows: int | None = None
    """Maximum number of rows that a terminal shows; ``None`` for all rows."""

    @property
    def headings(self) -> tuple[str, ...]:
        """Headings of the columns."""
        return tuple(column.heading for column in self.columns)


class Paragraph(BasePart, frozen=True):
    """One or several sentences."""

    text: str
    style: str = ""


class Bullets(BasePart, frozen=True):
    """List of sentences."""

    items: tuple[str, ...]
    style: str = ""
    max_items: int | None = None
    """Maximum number of items that a terminal shows; ``None`` for all items."""


class Facts(BasePart, frozen=True):
    """List of names, each with its value."""

    pairs: tuple[tuple[str | ConditionName, str | tuple[str, ...]], ...]
    """Names and values; a value is a text, or several texts, each on its own line."""

    def texts(self, separator: str) -> Iterator[tuple[str, str]]:
        """Yield names and values as plain text; ``separator`` joins the lines of a value."""
        for name, value in self.pairs:
            yield text_of(name), value if isinstance(value, str) else separator.join(value)


class Command(BasePart, frozen=True):
    """Command line to copy."""

    line: str
    purpose: str
    """Sentence before the line; it says the purpose of the line and ends in a colon."""

    def __post_init__(self) -> None:
        """Shorten a long purpose, but not the line, because a reader copies the line."""
        force_setattr(self, "purpose", shortened(self.purpose, MAX_LINE_LETTERS))


class Listing(BasePart, frozen=True):
    """Lines of a file or of a patch, shown unchanged."""

    lines: tuple[str, ...]


class ReportWarning(Protocol):
    """Warning about a campaign, a host or an analysis."""

    @property
    def code(self) -> str:
        """Identifier of the kind of warning."""

    @property
    def summary(self) -> str:
        """Sentence that describes the problem."""

    @property
    def hint(self) -> str:
        """Remedy for the problem; empty if there is none."""


class Warnings(BasePart, frozen=True):
    """Warnings, each with its hint."""

    warnings: tuple[ReportWarning, ...]
    badge: str = "warning"
    """Word before each warning on a terminal; also the name of its style."""
    max_per_code: int = MAX_SIMILAR_LINES
    """Maximum number of warnings of one code that a terminal or text shows."""

    @property
    def shown_warnings(self) -> tuple[ReportWarning, ...]:
        """At most ``max_per_code`` warnings of each code."""
        by_code: dict[str, list[ReportWarning]] = {}
        for warning in self.warnings:
            by_code.setdefault(warning.code, []).append(warning)
        return tuple(chain.from_iterable(alike[: self.max_per_code] for alike in by_code.values()))

    @property
    def hidden_count(self) -> int:
        """Number of warnings that a terminal or text leaves out."""
        return len(self.warnings) - len(self.shown_warnings)


class Figures(PagePart, frozen=True):
    """Charts, which a renderer draws when it needs them."""

    draw: Callable[[], Iterable[Figure]]
    title: str = "Figures"
    unprinted_names: frozenset[str] = frozenset()
    """Names of figures that a page shows on a screen but not on paper."""

    def figures(self) -> tuple[Figure, ...]:
        """Draw the figures.

        The check against the schema of Vega-Lite is off, because it takes two thirds of the time.
        """
        from altair.utils.schemapi import debug_mode

        with debug_mode(False):
            return tuple(self.draw())


class FlameGraph(PagePart, frozen=True):
    """Flame graph of both conditions as SVG."""

    svg: bytes


class Strip(Struct, frozen=True):
    """Drawing of a ratio's interval on a line; all positions are in percent of the line's width."""

    ratio_one: float
    """Position of the ratio 1."""
    negligible: tuple[float, float]
    """Begin and width of the range of ratios that are too near 1 to matter."""
    interval: tuple[float, float]
    """Begin and width of the ratio's interval."""
    is_open_left: bool
    """Whether the interval has no lower end."""
    is_open_right: bool
    """Whether the interval has no upper end."""
    estimate: float | None
    """Position of the ratio's estimate."""
    left_word: str
    """Word at the left end of the line; empty if there is not enough space."""
    right_word: str
    description: str
    """Sentence for screen readers."""


class Statement(Struct, frozen=True):
    """Statement of a result: a verdict, or a finding of an analysis."""

    badge: str
    """Verdict, or kind of the statement, in one or two words."""
    color_verdict: str
    """Verdict whose colour the badge has."""
    text: str
    subject: str = ""
    """Name of the estimated quantity."""
    estimate: str = ""
    interval: str = ""
    """Interval with its coverage; empty if there is none."""
    strip: Strip | None = None
    """Drawing of the interval; ``None`` if there is none."""
    cause_sentence: str = ""
    """Sentence on the cause of the difference; empty if no cause was searched for."""
    remarks: tuple[str, ...] = ()
    """Sentences below the statement."""
    certainty_lines: tuple[str, ...] = ()
    """Lines for a terminal that say how certain the statement is."""
    certainty_facts: tuple[tuple[str, str], ...] = ()
    """Names and values for a page that say how certain the statement is."""


class Statements(PagePart, frozen=True):
    """Statements of a long result, which are below the answer."""

    statements: tuple[Statement, ...]


class Answer(BasePart, frozen=True):
    """The answer of a report; a reader sees it first."""

    title: str
    """Sentence above the statements; empty if the first statement is the answer."""
    lines: tuple[str, ...] = ()
    """Sentences below the title."""
    statements: tuple[Statement, ...] = ()
    tiles: tuple[tuple[str, str], ...] = ()
    """Names and values that a page shows as large tiles."""
    warning_count: int = 0
    """Number of warnings of the result, for the link to the warnings."""


class Section(BasePart, frozen=True):
    """Parts under a heading."""

    title: str
    parts: tuple[Part, ...]
    folded: bool = False
    """Whether a page shows the parts only if the reader opens the section."""
    on_paper: bool = True
    """Whether the section is printed."""


AnyPart = TypeVar("AnyPart", bound=BasePart)
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
    | Statements
)


class Origin(Struct, frozen=True):
    """Origin of a result; a page shows it before the answer."""

    question: str
    command: str
    """Command line that computes the result again; empty if there is none."""
    when: str = ""
    """Time of the measurement or computation; empty until it is known."""
    machine: str = ""


class Document(Struct, frozen=True):
    """Report of one result, which every renderer can write."""

    name: str
    """Unique identifier; two documents may have the same title."""
    title: str
    """The answer or the question in a few words."""
    parts: tuple[Part, ...]
    csv_rows: tuple[CsvRow, ...] = field(default=())
    """Rows of the CSV table, for other programs."""
    origin: Origin | None = None


def full_and_brief(full_part: AnyPart, brief_part: AnyPart) -> tuple[AnyPart, AnyPart]:
    """Return ``brief_part`` for a brief terminal, and ``full_part`` for its other forms."""
    other_forms = full_part.forms - BRIEF_TERMINAL
    return replace(full_part, forms=other_forms), replace(brief_part, forms=BRIEF_TERMINAL)


def computation_parts(method: Iterable[str], command: str) -> Iterator[Part]:
    """Build the sections on the method of a result, and on the command that computes it again."""
    yield Section("How it was computed", tuple(map(Paragraph, method)), forms=NOT_TERMINAL)
    if command:
        yield Section("Do it again", (Command(command, "Again:"),), forms=NOT_TERMINAL)


def parts_in(parts: Iterable[Part], form: Form) -> tuple[Part, ...]:
    """Return the parts that a form shows, without empty sections."""
    visible_parts = (
        replace(part, parts=parts_in(part.parts, form)) if isinstance(part, Section) else part
        for part in parts
        if form in part.forms
    )
    return tuple(part for part in visible_parts if not isinstance(part, Section) or part.parts)


def figures_of(document: Document) -> Iterator[Figure]:
    """Draw every figure of a document, in reading order."""
    for part in _with_inner_parts(document.parts):
        if isinstance(part, Figures):
            yield from part.figures()


def without_figures(parts: Iterable[Part]) -> Iterator[Part]:
    """Yield the parts of a document except its figures, which are not drawn."""
    for part in parts:
        if isinstance(part, Section):
            yield replace(part, parts=tuple(without_figures(part.parts)))
        elif not isinstance(part, Figures):
            yield part


def field_cells(part: object, *names: str) -> CsvRow:
    """Return fields of a part of a result as CSV cells; a missing field is unknown."""
    return {name: getattr(part, name, None) for name in names}


def interval_cells(name: str, value: float | None, interval: Interval | None) -> CsvRow:
    """Return a value as ``name``, and the ends of its interval as ``name_low``, ``name_high``."""
    low, high = interval or (None, None)
    return {name: value, f"{name}_low": low, f"{name}_high": high}


def ratio_cells(part: Any) -> CsvRow:
    """Return the ratio, the interval and the level of a comparison; unknown for ``None``."""
    ratio, interval = getattr(part, "ratio", None), getattr(part, "ratio_ci", None)
    return {**interval_cells("ratio", ratio, interval), **field_cells(part, "significance_level")}


def _with_inner_parts(parts: Iterable[Part]) -> Iterator[Part]:
    for part in parts:
        yield part
        if isinstance(part, Section):
            yield from _with_inner_parts(part.parts)
