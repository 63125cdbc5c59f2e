"""One BLAS library computes with another kernel: it was told, or thinks, of another processor."""

from __future__ import annotations

import re

from equipoise.why.causes.found import Found
from equipoise.why.causes.remaining import Remaining, added
from equipoise.why.causes.wording import is_more, is_named, of_faster, of_slower
from equipoise.why.differences.changes import is_certain
from equipoise.why.differences.result import Change, Function

CAUSE = "wrong_blas_kernel"
WORDS = "two functions of one BLAS library do the same work, and one condition takes the slower one"

_BLAS = re.compile(r"lib(open|f77|c|t|s|pt)?(blas|atlas|blis|lapack|mkl|flexiblas)[\w.+-]*")
_MAIN = 0.5
"""A kernel has at least so much of its library's time."""

_SETTINGS = frozenset(
    f"environment {name}"
    for name in ("OPENBLAS_CORETYPE", "BLIS_ARCH_TYPE", "MKL_ENABLE_INSTRUCTIONS", "MKL_CBWR")
)


def find(remaining: Remaining) -> tuple[Found, ...]:
    """In each BLAS library that both conditions use, its two kernels."""
    modules = {function.module for function in remaining.functions}
    found = (_in(remaining, module) for module in modules if _BLAS.fullmatch(module))
    return tuple(one for one in found if one is not None)


def _told(remaining: Remaining) -> dict[str, dict[str, str | None]]:
    """What one condition's library is told of the processor, and the other's is not."""
    return {
        one.name: {"baseline": one.baseline, "candidate": one.candidate}
        for one in remaining.difference.settings
        if one.name.removeprefix("server ") in _SETTINGS
    }


def _nameless(
    remaining: Remaining,
    module: str,
    inside: dict[Function, Change],
    told: dict[str, dict[str, str | None]],
) -> Found:
    """Kernels of a library without symbols, such as Debian's BLIS: what it was told names them."""
    extra = remaining.extra(functions=inside)
    names = " and ".join(name.removeprefix("environment ") for name in told)
    return extra.found(
        cause=CAUSE,
        kind="configuration",
        evidence={
            "function": None,
            "instead_of": None,
            "module": module,
            "settings": told,
        },
        words=f"{module}, whose functions have no names, computes longer as {names} tells it to",
    )


def _in(remaining: Remaining, module: str) -> Found | None:
    difference = remaining.difference
    inside = {one: change for one, change in remaining.functions.items() if one.module == module}
    whole = added(inside.values())

    def main(side: str) -> Function | None:
        total = getattr(whole, side)
        heaviest = max(inside, key=lambda one: float(getattr(inside[one], side)))
        return heaviest if getattr(inside[heaviest], side) > _MAIN * total > 0 else None

    slow, fast = main(difference.slower), main(difference.faster)
    told = _told(remaining)
    if slow is None or fast is None:
        return None
    if slow == fast:
        nameless = not is_named(slow.name) and is_more(inside[slow])
        return _nameless(remaining, module, inside, told) if nameless and told else None
    # That one is there and the other is not is certain before how long they take.
    if not is_more(inside[slow]) and not is_certain(inside[fast]):
        return None
    # Each is the kernel of one condition only.
    if of_faster(difference, inside[slow]) > of_faster(difference, inside[fast]) / 2:
        return None
    if of_slower(difference, inside[fast]) > of_slower(difference, inside[slow]) / 2:
        return None
    extra = remaining.extra(functions=inside)
    return extra.found(
        cause=CAUSE,
        kind="configuration",
        evidence={
            "function": slow.name,
            "instead_of": fast.name,
            "module": module,
            "settings": told,
        },
        words=f"{module} computes with {slow.name}() instead of {fast.name}()",
    )
