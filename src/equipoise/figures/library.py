"""What is needed to draw: altair and vl-convert, and Vega's own JavaScript for a page."""

from __future__ import annotations

import base64
import functools
import hashlib
import importlib.util
import json
from typing import Any

from equipoise.model.errors import UnusableInput


def require_figures() -> None:
    """Check that figures can be drawn at all.

    Raises
    ------
    UnusableInput
        altair or vl-convert is not installed.
    """
    missing = [name for name in ("altair", "vl_convert") if importlib.util.find_spec(name) is None]
    if missing:
        raise UnusableInput(
            f"figures need {' and '.join(missing).replace('_', '-')}, which is not installed",
            hint="pip install 'equipoise[report]'",
        )


@functools.cache
def vega_library() -> str:
    """Vega, Vega-Lite and Vega-Embed as one script without a request; about 0.9 MB.

    They come out of vl-convert and are bundled anew at each first call, which takes seconds.
    """
    import vl_convert

    return vl_convert.javascript_bundle(
        "window.vegaEmbed = vegaEmbed;", vl_version=vega_lite_version()
    )


def vega_lite_version() -> str:
    """The version that altair writes, as vl-convert takes it: ``6.4``."""
    import altair

    return ".".join(altair.SCHEMA_VERSION.removeprefix("v").split(".")[:2])


def script_json(value: Any) -> str:
    """JSON that may stand in a script element: no text in it can end the element or open one.

    Raises
    ------
    ValueError
        A number is not finite: JSON has no such thing.
    """
    text = json.dumps(value, allow_nan=False, ensure_ascii=False, separators=(",", ":"))
    for dangerous in "<>&\u2028\u2029":
        text = text.replace(dangerous, f"\\u{ord(dangerous):04x}")
    return text


def content_policy(*scripts: str) -> str:
    """A content security policy: these scripts, inline style, and no request of any kind.

    No attribute of an element can run anything: neither it nor a script that is put in later has
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
