"""Writes a chart to a file: an HTML page, an SVG picture or a PNG picture.

A page contains the JavaScript of Vega, and a policy that forbids other scripts.
"""

from __future__ import annotations

import base64
import contextlib
import functools
import hashlib
import importlib.metadata
import json
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from equipoise.files.state import private_folder
from equipoise.files.writing import write_or_refuse, write_whole
from equipoise.model.errors import UnusableInput
from equipoise.shared.pictures import PIXELS_PER_POINT, png, require_figures, svg, vega_lite_version
from equipoise.shared.theme import Theme, configuration

if TYPE_CHECKING:
    import altair as alt


_LIBRARIES_FOLDER = "figures"
"""Folder in the state folder, with the JavaScript of Vega."""
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
    """Write a chart to a ``.html``, ``.svg`` or ``.png`` file, without a network request.

    Raise `UnusableInput` if the name has another ending, the file cannot be written, or vl-convert
    is missing.
    """
    require_figures()
    writers: dict[str, Callable[[dict[str, Any]], bytes]] = {
        ".html": _html,
        ".svg": svg,
        ".png": png,
    }
    write = writers.get(path.suffix.lower())
    if write is None:
        extension = f"the extension '{path.suffix}'" if path.suffix else "a name without extension"
        raise UnusableInput(
            f"{path}: {extension} does not select a format of figures",
            hint=f"end the name in {', '.join(writers)}",
        )
    content = write({**chart.to_dict(validate=False), "config": configuration(theme)})
    write_or_refuse(path, content, "choose a folder in which you may write")


def pixels_of(picture: bytes) -> bytes:
    """Convert an SVG picture to a PNG picture, without a network request.

    Raise `UnusableInput` if vl-convert is missing.
    """
    require_figures()
    import vl_convert

    return vl_convert.svg_to_png(picture.decode(), scale=PIXELS_PER_POINT)


@functools.cache
def vega_library() -> str:
    """Return Vega, Vega-Lite and Vega-Embed as one script of about 0.9 MB.

    The script makes no network request. To make it takes seconds, so the state folder keeps it.
    """
    version = vega_lite_version()
    name = f"vega-lite-{version}-of-{importlib.metadata.version('vl-convert-python')}.js"
    library = _kept_library(name)
    if library is None:
        import vl_convert

        library = vl_convert.javascript_bundle("window.vegaEmbed = vegaEmbed;", vl_version=version)
        # A page needs no state folder: the next command makes the script again.
        with contextlib.suppress(UnusableInput, OSError):
            content = f"{_digest_of(library)}\n{library}".encode()
            write_whole(private_folder(_LIBRARIES_FOLDER) / name, content)
    return library


def _kept_library(name: str) -> str | None:
    """Return a script from the state folder; ``None`` if it is missing or damaged."""
    try:
        content = (private_folder(_LIBRARIES_FOLDER) / name).read_bytes().decode()
    except (UnusableInput, OSError, UnicodeDecodeError):
        return None
    digest, _, library = content.partition("\n")
    return library if digest == _digest_of(library) else None


def _digest_of(library: str) -> str:
    return hashlib.sha256(library.encode()).hexdigest()


def script_json(value: Any) -> str:
    """Return JSON for a script element; a text in the JSON cannot end the element.

    Raise `ValueError` if a number is not finite: JSON has no such number.
    """
    text = json.dumps(value, allow_nan=False, ensure_ascii=False, separators=(",", ":"))
    for dangerous in "<>&\u2028\u2029":
        text = text.replace(dangerous, f"\\u{ord(dangerous):04x}")
    return text


def content_policy(*scripts: str) -> str:
    """Return a content security policy that allows these scripts, inline style, and no request.

    A script runs only if its hash is in the policy (CSP 3, §8.3).
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
