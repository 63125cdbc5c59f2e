"""Writing one chart to a file: a page, a vector picture or a pixel picture."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from equipoise.figures.library import (
    content_policy,
    require_figures,
    script_json,
    vega_library,
    vega_lite_version,
)
from equipoise.figures.theme import Theme, configuration
from equipoise.files.writing import write_whole
from equipoise.model.errors import UnusableInput

if TYPE_CHECKING:
    import altair as alt

PIXELS_PER_POINT = 2.0

_PAGE = """<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="{policy}">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>Equipoise</title>
</head>
<body>
<div id="chart"></div>
<script type="application/json" id="specification">{specification}</script>
<script>{library}</script>
<script>{script}</script>
</body>
</html>
"""
_SCRIPT = """
vegaEmbed("#chart", JSON.parse(document.getElementById("specification").textContent), {
  ast: true, renderer: "svg",
  actions: { export: true, source: false, compiled: false, editor: false },
});
"""


def save(chart: alt.LayerChart, path: Path, theme: Theme = "light") -> None:
    """Write a chart to a ``.html``, ``.svg`` or ``.png`` file; nothing is fetched for it.

    Raises
    ------
    UnusableInput
        The ending is another one, the file cannot be written, or vl-convert is missing.
    """
    require_figures()
    writers: dict[str, Callable[[dict[str, Any]], bytes]] = {
        ".html": _html,
        ".svg": _svg,
        ".png": _png,
    }
    write = writers.get(path.suffix.lower())
    if write is None:
        raise UnusableInput(
            f"{path}: a figure cannot be written as '{path.suffix}'",
            hint=f"end the name in {', '.join(writers)}",
        )
    content = write({**chart.to_dict(), "config": configuration(theme)})
    try:
        write_whole(path, content)
    except OSError as error:
        raise UnusableInput(
            f"cannot write {path}: {error.strerror}", hint="name a folder that can be written to"
        ) from error


def pixels_of(picture: bytes) -> bytes:
    """A vector picture (SVG) as pixels (PNG); nothing is fetched for it.

    Raises
    ------
    UnusableInput
        vl-convert is missing.
    """
    require_figures()
    import vl_convert

    return vl_convert.svg_to_png(picture.decode(), scale=PIXELS_PER_POINT)


def _html(specification: dict[str, Any]) -> bytes:
    library = vega_library()
    return _PAGE.format(
        policy=content_policy(library, _SCRIPT),
        specification=script_json(specification),
        library=library,
        script=_SCRIPT,
    ).encode()


def _svg(specification: dict[str, Any]) -> bytes:
    import vl_convert

    return vl_convert.vegalite_to_svg(
        specification, vl_version=vega_lite_version(), allowed_base_urls=[]
    ).encode()


def _png(specification: dict[str, Any]) -> bytes:
    import vl_convert

    return vl_convert.vegalite_to_png(
        specification,
        vl_version=vega_lite_version(),
        allowed_base_urls=[],
        scale=PIXELS_PER_POINT,
    )
