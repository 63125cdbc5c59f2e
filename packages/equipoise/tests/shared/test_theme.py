"""Colours can be told apart in both themes, by those too who see fewer of them."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from numpy.typing import NDArray

from equipoise.shared.theme import (
    BACKGROUND,
    PALETTE,
    SHAPES,
    Theme,
    color_of,
    configuration,
    shape_of,
)

# Machado, Oliveira and Fernandes (2009), severity 1, on linear sRGB.
BLINDNESS = {
    "protanopia": [[0.152286, 1.052583, -0.204868], [0.114503, 0.786281, 0.099216],
                   [-0.003882, -0.048116, 1.051998]],
    "deuteranopia": [[0.367322, 0.860646, -0.227968], [0.280085, 0.672501, 0.047413],
                     [-0.011820, 0.042940, 0.968881]],
    "tritanopia": [[1.255528, -0.076749, -0.178779], [-0.078411, 0.930809, 0.147602],
                   [0.004733, 0.691367, 0.303900]],
}  # fmt: skip


def linear(color: str) -> NDArray[np.float64]:
    """Linear sRGB, shape (3,)."""
    values = np.array([int(color[place : place + 2], 16) for place in (1, 3, 5)]) / 255
    return np.where(values <= 0.04045, values / 12.92, ((values + 0.055) / 1.055) ** 2.4)


def luminance(color: str) -> float:
    """Relative luminance (WCAG 2.2)."""
    return float(linear(color) @ [0.2126, 0.7152, 0.0722])


def contrast(one: str, other: str) -> float:
    """The contrast ratio (WCAG 2.2)."""
    low, high = sorted((luminance(one), luminance(other)))
    return (high + 0.05) / (low + 0.05)


def lab(rgb: NDArray[np.float64]) -> NDArray[np.float64]:
    """CIE L*a*b* of linear sRGB under D65."""
    matrix = np.array(
        [[0.4124, 0.3576, 0.1805], [0.2126, 0.7152, 0.0722], [0.0193, 0.1192, 0.9505]]
    )
    x, y, z = np.cbrt(np.clip(matrix @ rgb, 1e-4, None) / [0.9505, 1.0, 1.089])
    return np.array([116 * y - 16, 500 * (x - y), 200 * (y - z)])


@pytest.mark.parametrize("theme", ["light", "dark"])
@pytest.mark.parametrize("color", PALETTE)
def test_every_colour_stands_out_from_both_backgrounds(color: str, theme: Theme) -> None:
    assert contrast(color, BACKGROUND[theme]) >= 3.0


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_text_can_be_read_in_both_themes(theme: Theme) -> None:
    whole = configuration(theme)
    for color in (whole["axis"]["labelColor"], whole["title"]["color"]):
        assert contrast(color, BACKGROUND[theme]) >= 4.5


@pytest.mark.parametrize("blindness", BLINDNESS)
def test_the_first_four_colours_differ_for_the_colour_blind(blindness: str) -> None:
    pictures = [
        lab(np.clip(np.array(BLINDNESS[blindness]) @ linear(color), 0, 1)) for color in PALETTE[:4]
    ]
    for one, other in itertools.combinations(pictures, 2):
        assert float(np.linalg.norm(one - other)) > 14


def test_conditions_differ_in_shape_where_colours_repeat() -> None:
    assert len({(color_of(place), shape_of(place)) for place in range(len(PALETTE))}) == len(
        PALETTE
    )
    assert len(SHAPES) >= len(PALETTE)
