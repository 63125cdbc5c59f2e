"""Writing a chart to a file: a page, a vector picture or a pixel picture.

Also what a page of charts needs: Vega's own JavaScript, and the policy that lets only it run.
"""

from __future__ import annotations

import base64
import functools
import hashlib
import json
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from equipoise.files.writing import write_or_refuse
from equipoise.model.errors import UnusableInput
from equipoise.shared.pictures import (
    PIXELS_PER_POINT,
    png,
    require_figures,
    svg,
    vega_lite_version,
)
from equipoise.shared.theme import Theme, configuration

if TYPE_CHECKING:
    import altair as alt


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
    """Write a chart to a ``.html``, ``.svg`` or ``.png`` file, without any request.

    Raise `UnusableInput` if the file has another ending or cannot be written, or vl-convert is
    missing.
    """
    require_figures()
    writers: dict[str, Callable[[dict[str, Any]], bytes]] = {
        ".html": _html,
        ".svg": svg,
        ".png": png,
    }
    write = writers.get(path.suffix.lower())
    if write is None:
        raise UnusableInput(
            f"{path}: a figure cannot be written as '{path.suffix}'",
            hint=f"end the name in {', '.join(writers)}",
        )
    content = write({**chart.to_dict(validate=False), "config": configuration(theme)})
    write_or_refuse(path, content, "name a folder that can be written to")


def pixels_of(picture: bytes) -> bytes:
    """Convert a vector picture (SVG) to pixels (PNG), without any request.

    Raise `UnusableInput` if vl-convert is missing.
    """
    require_figures()
    import vl_convert

    return vl_convert.svg_to_png(picture.decode(), scale=PIXELS_PER_POINT)


@functools.cache
def vega_library() -> str:
    """Return Vega, Vega-Lite and Vega-Embed as one script, which makes no request; about 0.9 MB.

    vl-convert bundles them at the first call, which takes seconds.
    """
    import vl_convert

    return vl_convert.javascript_bundle(
        "window.vegaEmbed = vegaEmbed;", vl_version=vega_lite_version()
    )


def script_json(value: Any) -> str:
    """Return JSON for a script element: no text in it can end the element or open one.

    Raise `ValueError` if a number is not finite: JSON has no such number.
    """
    text = json.dumps(value, allow_nan=False, ensure_ascii=False, separators=(",", ":"))
    for dangerous in "<>&\u2028\u2029":
        text = text.replace(dangerous, f"\\u{ord(dangerous):04x}")
    return text


def content_policy(*scripts: str) -> str:
    """Return a content security policy: these scripts, inline style, and no request of any kind.

    No attribute of an element can run code, nor can a script that is inserted later: neither has
    one of the hashes (CSP 3, §8.3).
    """
    hashes = " ".join(
        f"'sha256-{base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()}'"
        for script in scripts
    )
    return (
        f"default-src 'none'; script-src {hashes}; style-src 'unsafe-inline'; "
        "img-src data: blob:; base-uri 'none'; form-action 'none'"
    )


def _html(specification: dict[str, Any]) -> bytes:
    library = vega_library()
    return _PAGE.format(
        policy=content_policy(library, _SCRIPT),
        specification=script_json(specification),
        library=library,
        script=_SCRIPT,
    ).encode()
