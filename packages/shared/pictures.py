"""Charts as pictures: SVG and PNG by vl-convert, without network requests."""

from __future__ import annotations

import importlib.util
import re
from hashlib import blake2b
from typing import Any

from .errors import UnusableInput
from .extras import CHARTS_EXTRA, DISTRIBUTION, install_line

PIXELS_PER_POINT = 2.0
"""Scale of a PNG picture, for screens with a high resolution."""
MAX_VECTOR_ROWS = 1500
"""Maximum number of rows in a vector picture; with more rows, scrolling becomes slow."""
MimeBundle = tuple[dict[str, Any], dict[str, Any]]
"""Content of an object for a notebook, by MIME type, and metadata for each type."""


def notebook_pictures(specification: dict[str, Any]) -> MimeBundle:
    """Return a chart for a notebook as SVG and PNG, which need no network.

    A chart of many marks is only a PNG picture, because the SVG picture would have megabytes.

    Raise `UnusableInput` if vl-convert is missing.
    """
    require_figures()
    pixels = png(specification)
    # In a PNG file, the width is at offset 16 and the height at offset 20, with four bytes each.
    width, height = (int.from_bytes(pixels[offset : offset + 4], "big") for offset in (16, 20))
    size = {"width": width / PIXELS_PER_POINT, "height": height / PIXELS_PER_POINT}
    pictures: dict[str, Any] = {"image/png": pixels}
    if sum(map(len, specification.get("datasets", {}).values())) <= MAX_VECTOR_ROWS:
        pictures["image/svg+xml"] = svg(specification).decode()
    return pictures, {"image/png": size}


def has_figures() -> bool:
    """Return whether the libraries that draw figures are installed."""
    return not _missing_libraries()


def _missing_libraries() -> list[str]:
    return [name for name in ("altair", "vl_convert") if importlib.util.find_spec(name) is None]


def require_figures() -> None:
    """Raise `UnusableInput` if altair or vl-convert, which draw figures, is not installed."""
    missing = _missing_libraries()
    if missing:
        names, verb = " and ".join(missing).replace("_", "-"), "is" if len(missing) == 1 else "are"
        raise UnusableInput(
            f"figures need {names}, which {verb} not installed",
            hint=install_line(f"{DISTRIBUTION}[{CHARTS_EXTRA}]"),
        )


def vega_lite_version() -> str:
    """Return altair's version of Vega-Lite in the form for vl-convert: ``6.4``."""
    import altair

    return ".".join(altair.SCHEMA_VERSION.removeprefix("v").split(".")[:2])


def svg(specification: dict[str, Any]) -> bytes:
    """Return a chart as a vector picture; equal charts give equal pictures."""
    import vl_convert

    picture = vl_convert.vegalite_to_svg(
        specification, vl_version=vega_lite_version(), allowed_base_urls=[]
    )
    return _with_unique_ids(picture).encode()


_ID = re.compile(r'(?<=\bid=")(?:clip|gradient_)\d+(?=")|(?<=url\(#)(?:clip|gradient_)\d+(?=\))')
"""Id of an element that Vega made, or a reference to this id."""


def _with_unique_ids(picture: str) -> str:
    digest = blake2b(_ID.sub("", picture).encode(), digest_size=6).hexdigest()
    numbers: dict[str, int] = {}
    return _ID.sub(
        lambda match: f"id-{digest}-{numbers.setdefault(match[0], len(numbers))}", picture
    )


def png(specification: dict[str, Any]) -> bytes:
    """Return a chart as a PNG picture."""
    import vl_convert

    return vl_convert.vegalite_to_png(
        specification, vl_version=vega_lite_version(), allowed_base_urls=[], scale=PIXELS_PER_POINT
    )
