"""Chart of a fleet: the ratio on each host, the mean, and the interval of one more host."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence

import altair as alt
from msgspec import Struct

from equipoise.figures.building import RATIO_TOOLTIPS, ratio_axis
from equipoise.figures.gallery import (
    ConfidenceSequences,
    Figure,
    KindFigures,
    as_value_ratios,
    optional_figure,
)
from equipoise.figures.quantity import metric_name, values_on_axis
from equipoise.figures.ratios import HOW_TO_READ_RATIOS, ratios
from equipoise.kinds.fleet.terms import FleetComparison, FleetDocument, HostEffect
from equipoise.model.quantities import Interval, counted
from equipoise.shared.chart_parts import (
    Rows,
    color_and_shape,
    frame,
    layer,
    name_rows,
    point,
    rule,
    tooltips,
    top_legend,
)

HOW_TO_READ = (
    "Each row is a host. The mark is the ratio and the bar its interval; all these intervals hold "
    "together. Below them are the mean over the asked hosts and the interval of one more host, "
    "with its chance. Within the grey strip the difference is too small to matter."
)
MAX_DRAWN_HOSTS = 60
_HOST, _DIFFERENT_HOST, _MEAN, _NEW_HOST = (
    "host",
    "differs from the others",
    "mean over the asked hosts",
    "one more host",
)
_BAR_KINDS = (_HOST, _DIFFERENT_HOST, _MEAN, _NEW_HOST)
_COLOR_INDICES = (0, 3, 1, 2)
"""Index in the palette of colours, for each kind of row."""
_ROW_HEIGHT = 24
"""Height of a row, in pixels."""


class _Bar(Struct, frozen=True):
    """A row of the chart: a host, the mean or one more host."""

    label: str
    kind: str
    ratio: float | None
    ends: Interval
    blocks: int | None


def hosts_chart(comparison: FleetComparison) -> alt.LayerChart | None:
    """Draw the hosts of a comparison; return ``None`` if fewer than two hosts have a ratio.

    The ratios are of costs, or of values if more of the metric is better.
    """
    hosts_with_ratio = [host for host in comparison.hosts if host.ratio]
    if len(hosts_with_ratio) < 2 or comparison.fleet is None:
        return None
    drawn_hosts = _hosts_to_draw(hosts_with_ratio)
    bars = list(_host_bars(comparison, drawn_hosts))
    # One more host has no ratio, so an end of the interval gives the position.
    ratios_and_ends = [(bar.ratio or next(filter(None, bar.ends), None), bar.ends) for bar in bars]
    drawn_ratios = [(ratio, ends) for ratio, ends in ratios_and_ends if ratio is not None]
    axis = ratio_axis(values_on_axis(drawn_ratios), comparison.min_effect)
    x = axis.channel(alt.X, f"{metric_name(comparison.metric)} against {comparison.baseline}")
    y = name_rows("label", [bar.label for bar in bars])
    kinds = [kind for kind in _BAR_KINDS if any(bar.kind == kind for bar in bars)]
    color_indices = [_COLOR_INDICES[_BAR_KINDS.index(kind)] for kind in kinds]
    color, shape = color_and_shape(
        "kind", kinds, color_indices, top_legend(columns=2, labelLimit=300)
    )
    marks: Rows = [
        {
            "label": bar.label,
            "kind": bar.kind,
            "blocks": bar.blocks,
            **axis.coordinates(bar.ratio, bar.ends),
        }
        for bar in bars
    ]
    points = [mark for mark in marks if mark["ratio"] is not None]
    tooltip = tooltips(("label:N", "host"), ("kind:N",), *RATIO_TOOLTIPS, ("blocks:Q",))
    return frame(
        [
            *axis.reference_marks(comparison.min_effect, x),
            layer(marks, rule(width=3), x=x, x2="high:Q", y=y, color=color, tooltip=tooltip),
            layer(
                points, point(size=70), x="ratio:Q", y=y, color=color, shape=shape, tooltip=tooltip
            ),
        ],
        title=f"{comparison.candidate} against {comparison.baseline} on each host",
        notes=list(_notes(comparison, len(hosts_with_ratio), len(drawn_hosts))),
        description=f"Ratios with intervals, a row for each host. {comparison.summary}",
        height=_ROW_HEIGHT * max(len(bars), 4),
    )


def _hosts_to_draw(hosts_with_ratio: Sequence[HostEffect]) -> list[HostEffect]:
    """Return up to ``MAX_DRAWN_HOSTS`` hosts, evenly spaced by the rank of their ratios."""
    if len(hosts_with_ratio) <= MAX_DRAWN_HOSTS:
        return list(hosts_with_ratio)
    ranked = sorted(hosts_with_ratio, key=lambda host: host.ratio or 0.0)
    last_rank = len(ranked) - 1
    ranks = [round(step * last_rank / (MAX_DRAWN_HOSTS - 1)) for step in range(MAX_DRAWN_HOSTS)]
    positions = {ranked[rank].place for rank in ranks}
    return [host for host in hosts_with_ratio if host.place in positions]


def _host_bars(comparison: FleetComparison, drawn_hosts: Sequence[HostEffect]) -> Iterator[_Bar]:
    answers = comparison.fleet
    assert answers is not None, "a comparison without answers is not drawn"
    names = {host.host for host in comparison.hosts}
    for host in drawn_hosts:
        kind = _DIFFERENT_HOST if host.host in answers.differences.differing else _HOST
        yield _Bar(host.host, kind, host.ratio, host.ratio_ci, host.blocks)
    if comparison.ratio is not None and comparison.ratio_ci != (None, None):
        label = f"{_MEAN} (all)" if _MEAN in names else _MEAN
        yield _Bar(label, _MEAN, comparison.ratio, comparison.ratio_ci, comparison.blocks)
    new_host = answers.new_host
    if new_host.unknown_because is None and new_host.chance is not None:
        label = f"{_NEW_HOST} (at least {math.floor(100 * new_host.chance + 1e-9)} %)"
        yield _Bar(label, _NEW_HOST, None, new_host.ratio_ci, None)


def _notes(comparison: FleetComparison, ratio_count: int, drawn_count: int) -> Iterator[str]:
    yield f"Holds {comparison.scope}."
    if drawn_count < ratio_count:
        yield f"{drawn_count} of {ratio_count} hosts are drawn, at even ranks of their ratios."
    if count := len(comparison.hosts) - ratio_count:
        yield f"Without a ratio: {counted(count, 'host')}."


class FleetFigures(KindFigures):
    """The figures of a fleet."""

    def gallery(self, document: FleetDocument, sequences: ConfidenceSequences) -> Iterator[Figure]:
        """Draw the ratios, and the hosts of each primary comparison."""
        if not document.conditions:
            return
        document, _ = as_value_ratios(document, sequences)
        yield from optional_figure("ratios", HOW_TO_READ_RATIOS, ratios(document))
        metric = document.primary_metric
        for comparison in document.comparisons:
            if comparison.metric == metric:
                yield from optional_figure("hosts", HOW_TO_READ, hosts_chart(comparison))
