"""Text that can be drawn: a vector picture is XML, which has no way to hold every character."""

from __future__ import annotations

import re
from typing import Any

_NO_XML = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
"""What is no ``Char`` of XML 1.0 (§2.2): controls, lone surrogates and two that are no characters.
vl-convert ends the process over one in a name."""


def drawable(value: Any) -> Any:
    """A specification of Vega-Lite with an escape in place of each character that XML lacks."""
    if isinstance(value, str):
        return _NO_XML.sub(lambda found: repr(found[0])[1:-1], value)
    if isinstance(value, dict):
        return {drawable(key): drawable(one) for key, one in value.items()}
    if isinstance(value, list):
        return [drawable(one) for one in value]
    return value
