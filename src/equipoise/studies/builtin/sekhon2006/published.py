"""The figures of the article and of its web page, for the conditions that stand for theirs here."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

STANDS_FOR: Mapping[str, str] = MappingProxyType(
    {
        "glibc": "Linux",
        "glibc_15k": "OS X, its own malloc (to the kernel from 15 KB)",
        "dlmalloc": "OS X with Doug Lea's malloc",
    }
)
"""What an allocator here stands for there."""

SECONDS: Mapping[tuple[str, str, str], float] = MappingProxyType(
    {
        ("scythe", "445", "glibc"): 8.84,
        ("scythe", "445", "glibc_15k"): 22.78,
        ("blas", "445", "glibc"): 4.4,
        ("blas", "445", "glibc_15k"): 4.6,
    }
)
"""By algorithm, rows and allocator: the best of three searches; Windows XP took 9.38 s (scythe)."""

RATIOS: Mapping[tuple[str, str, str], float] = MappingProxyType(
    {
        ("scythe", "445", "glibc_15k"): 22.78 / 8.84,
        ("blas", "445", "glibc_15k"): 4.6 / 4.4,
        ("blas", "890", "glibc_15k"): 1.2,
        ("blas", "1780", "glibc_15k"): 1.4,
        ("blas", "5340", "glibc_15k"): 1.5,
        ("blas", "445", "dlmalloc"): 1.0,
        ("blas", "890", "dlmalloc"): 1.11,
        ("blas", "1780", "dlmalloc"): 1.08,
        ("blas", "5340", "dlmalloc"): 1.0,
    }
)
"""Over Linux."""

P_VALUES: Mapping[tuple[str, str, str], str] = MappingProxyType(
    {
        ("blas", "445", "glibc_15k"): "0.09",
        ("blas", "890", "glibc_15k"): "0.00",
        ("blas", "890", "dlmalloc"): "0.00",
    }
)
"""Of the empirical distribution, as printed."""
