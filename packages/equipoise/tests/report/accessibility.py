"""Faults that axe, the checker of accessibility, finds on a page that a browser shows."""

from __future__ import annotations

import json
from importlib.resources import files
from typing import Any

from packages.equipoise.tests.report.chromium import Browser

RULES = ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa"]


def load_axe(browser: Browser) -> None:
    """Put axe into the page."""
    script = files("axe_core_python").joinpath("axe.min.js").read_text(encoding="utf-8")
    browser.call("Runtime.evaluate", expression=script)


def assert_accessible(browser: Browser) -> None:
    """No rule of WCAG 2.1 AA is broken, of those that can be checked without a person."""
    load_axe(browser)
    result: dict[str, Any] = json.loads(
        browser.evaluate(
            # A chart is one picture with a description: what it is made of is said to nobody.
            f"""axe.run({{exclude: ['.chart > *']}},
            {{runOnly: {json.dumps(RULES)}, resultTypes: ['violations']}})
            .then(found => JSON.stringify({{
              checked: found.passes.length,
              broken: found.violations.map(one =>
                [one.id, one.nodes.slice(0, 3).map(node => node.html.slice(0, 200))]),
            }}))"""
        )
    )
    assert result["broken"] == []
    assert result["checked"] >= 15
