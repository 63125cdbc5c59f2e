"""Causes in functions of the program."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from equipoise.why.differences.changes import Setting
from packages.equipoise.tests.why.causes.example_differences import (
    assert_first,
    calls,
    cause_ids,
    change,
    difference_with,
    first,
    found_by,
    function,
)

OPENBLAS = "libopenblasp-r0.3.21.so"
SLOW, FAST = function("dgemm_kernel_PRESCOTT", OPENBLAS), function("dgemm_kernel_HASWELL", OPENBLAS)

BLAS = difference_with(
    functions={
        SLOW: change(0.0, 1.6, 0.1),
        FAST: change(0.6, 0.0, 0.1),
        function("dgemm_otcopy_PRESCOTT", OPENBLAS): change(0.0, 0.1, 0.1),
    },
    settings=(Setting("environment OPENBLAS_CORETYPE", None, "Prescott"),),
)

CONTENDING = difference_with(
    threads=change(3, 3),
    on_processor=change(2.0, 4.0),
    functions={function("count_up"): change(2.0, 4.0, 0.2)},
    calls={"clone3": calls(2, 2)},
)


def test_kernel_of_another_processor_is_named_with_the_replaced_kernel() -> None:
    cause = assert_first(BLAS, "wrong_blas_kernel", function=SLOW.name, instead_of=FAST.name)
    assert cause.evidence["settings"] == {
        "environment OPENBLAS_CORETYPE": {"baseline": None, "candidate": "Prescott"}
    }
    # What the other kernel took is taken off.
    assert cause.seconds == pytest.approx(1.1)
    assert cause.share_of_gap == 1.0
    assert cause_ids(BLAS) == ["wrong_blas_kernel"]


def test_wrong_kernel_needs_a_certain_difference_in_one_kernel() -> None:
    noisy = {**BLAS.functions, SLOW: change(0.0, 1.6, 1.7)}
    assert first(replace(BLAS, functions=noisy)).cause == "wrong_blas_kernel"
    unsure = {**noisy, FAST: change(0.6, 0.0, 0.7)}
    assert not found_by("wrong_blas_kernel", replace(BLAS, functions=unsure))


def test_more_time_in_one_kernel_is_not_a_wrong_kernel() -> None:
    more = replace(BLAS, functions={SLOW: change(0.6, 1.6, 0.1)})
    assert not found_by("wrong_blas_kernel", more)
    assert first(more).cause == "more_time_in_function"


def test_kernels_without_names_are_recognised_by_the_settings_of_the_library() -> None:
    code = function("(unknown)", "libblas.so.3", "unknown")
    nameless = replace(
        BLAS,
        functions={code: change(0.6, 1.6, 0.1)},
        settings=(Setting("environment BLIS_ARCH_TYPE", "0", "25"),),
    )
    cause = assert_first(nameless, "wrong_blas_kernel", function=None)
    assert cause.evidence["settings"] == {
        "environment BLIS_ARCH_TYPE": {"baseline": "0", "candidate": "25"}
    }
    assert "with the setting of BLIS_ARCH_TYPE" in cause.summary
    untold = replace(nameless, settings=())
    assert first(untold).cause == "more_time_in_function"
    assert "code without a name in libblas.so.3" in first(untold).summary


def test_two_functions_outside_a_blas_are_not_kernels() -> None:
    other = replace(
        BLAS,
        functions={
            function("sort_slowly", "libsort.so"): change(0.0, 1.6, 0.1),
            function("sort", "libsort.so"): change(0.6, 0.0, 0.1),
        },
    )
    assert not found_by("wrong_blas_kernel", other)


def test_the_slower_function_is_named_and_the_others_are_not() -> None:
    fifty = {function(f"function_{at:02}"): change(0.02, 0.021, 0.02) for at in range(50)}
    difference = difference_with(
        functions={**fifty, function("function_17"): change(0.02, 1.0, 0.05)}
    )
    (cause,) = found_by("more_time_in_function", difference)
    assert cause.evidence["function"] == "function_17"


def test_unnamed_function_is_described_by_its_caller() -> None:
    copying = function("(unknown)", "libc.so.6", "unknown")
    difference = difference_with(
        functions={copying: change(0.0, 0.9, 0.1)},
        callers={copying: (function("join_text"), function("main"))},
    )
    assert first(difference).evidence["function"] == "join_text"


def test_python_function_is_named_instead_of_memmove() -> None:
    copying = function("__memmove_avx", "libc.so.6")
    inner = function("by_copying:/home/script.py", "python", "python")
    difference = difference_with(
        functions={copying: change(0.0, 0.9, 0.1)},
        inclusive={
            inner: change(0.0, 0.92, 0.05),
            function("main:/home/script.py", "python", "python"): change(0.1, 1.02, 0.05),
            function("<module>:/home/script.py", "python", "python"): change(0.1, 1.02, 0.05),
        },
    )
    place = {"module": "/home/script.py", "inside": "__memmove_avx"}
    assert_first(difference, "more_time_in_python_function", function="by_copying", **place)
    assert cause_ids(difference) == ["more_time_in_python_function"]


def test_equal_instructions_make_contention_certain() -> None:
    counted = replace(CONTENDING, instructions={"count_up": change(6e8, 6e8)})
    cause = assert_first(counted, "memory_contention")
    assert "for the same instructions" in cause.summary
    # Two threads at once: each second of theirs is half a second of the gap.
    assert cause.seconds == pytest.approx(1.0)


def test_more_instructions_are_more_work() -> None:
    more = replace(CONTENDING, instructions={"count_up": change(6e8, 12e8)})
    assert first(more).cause == "more_time_in_function"


def test_without_instructions_contention_is_only_possible() -> None:
    cause = assert_first(CONTENDING, "memory_contention", function="count_up")
    assert "may contend" in cause.summary


def test_other_differences_mean_more_work() -> None:
    busier = replace(CONTENDING, calls={"write": calls(100, 200)})
    assert first(busier).cause == "more_time_in_function"


def test_one_thread_has_no_contention() -> None:
    assert not found_by("memory_contention", replace(CONTENDING, threads=change(1, 1)))
