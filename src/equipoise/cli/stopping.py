"""When a campaign ends and what it compares, as ``compare`` and ``gate`` are asked."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from equipoise.model.errors import UnusableInput
from equipoise.model.plan import Stopping


def stopping_of(given: Mapping[str, Any], usual: Stopping) -> Stopping:
    """The limits that the options give, over the usual ones.

    Raises
    ------
    UnusableInput
        They contradict each other.
    """
    asked = {
        "blocks": given["blocks"],
        "min_blocks": given["min_blocks"],
        "budget_s": given["budget"],
        "precision": given["precision"],
    }
    stopping = replace(
        usual,
        **{key: value for key, value in asked.items() if value is not None},
        min_blocks_explicit=given["min_blocks"] is not None,
    )
    if stopping.min_blocks_explicit and stopping.min_blocks > stopping.blocks:
        raise UnusableInput(
            f"--min-blocks {stopping.min_blocks} is more than --blocks {stopping.blocks}",
            mend="lower the one or raise the other",
        )
    return stopping


def metrics_named(text: str) -> list[str]:
    """The names of ``--metrics``, each once.

    Raises
    ------
    UnusableInput
        One is empty.
    """
    names = list(dict.fromkeys(name.strip() for name in text.split(",")))
    if not all(names):
        raise UnusableInput(
            f"--metrics {text!r} holds an empty name", mend="as in --metrics wall_s,max_rss_bytes"
        )
    return names
