"""Student's t of the crate `special` agrees with scipy."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from equipoise import _native


def density(freedom: float) -> float:
    """Density of Student's t at 0, for values so small that the tail of scipy ignores them."""
    return float(stats.t.pdf(0.0, freedom))


@pytest.mark.parametrize("freedom", [0.3, 1.0, 2.5, 7.0, 63.0, 128.5, 444.0, 1e5, 3e8])
@pytest.mark.parametrize("t", [1e-9, 1e-3, 0.4, 1.0, 1.8, 3.0, 8.0, 25.0, -25.0])
def test_student_p_values_are_those_of_scipy_far_into_the_tails(t: float, freedom: float) -> None:
    expected = (
        2 * stats.t.sf(abs(t), freedom) if abs(t) > 1e-4 else 1 - 2 * abs(t) * density(freedom)
    )
    # The relative error of scipy grows with the logarithm of the value.
    p_value = _native.student_p_value(t, freedom)
    assert p_value == pytest.approx(expected, rel=1e-12 * max(1.0, abs(np.log(expected))), abs=0)


def test_student_p_values_at_the_ends() -> None:
    assert _native.student_p_value(0.0, 5.0) == 1.0
    assert _native.student_p_value(np.inf, 5.0) == 0.0
    assert np.isnan(_native.student_p_value(1.0, 0.0))
    assert np.isnan(_native.student_p_value(np.nan, 5.0))


@settings(max_examples=200, deadline=None)
@given(st.floats(0.0, 60.0), st.floats(0.1, 1e4))
def test_student_p_values_fall_as_t_grows(t: float, freedom: float) -> None:
    near, far = (_native.student_p_value(at, freedom) for at in (t, t * 1.01 + 0.01))
    assert 0.0 <= far <= near <= 1.0
