"""The environment variables that change how a program runs, and no others.

What stands in an environment may be a secret, and a ledger is passed on: only variables of
this list are recorded with their values. Of those in ``WITHHELD`` it is recorded that they are
set, because they matter and yet may hold what is nobody's business: folders, tokens, hosts.
"""

from __future__ import annotations

from collections.abc import Mapping

ALLOWED = frozenset(
    {
        # The dynamic loader.
        "LD_PRELOAD",
        "LD_LIBRARY_PATH",
        "LD_BIND_NOW",
        "LD_AUDIT",
        "LD_DEBUG",
        "LD_PROFILE",
        # Allocators.
        "GLIBC_TUNABLES",
        "MIMALLOC_VERBOSE",
        "MIMALLOC_LARGE_OS_PAGES",
        "TCMALLOC_RELEASE_RATE",
        # Threads.
        "MKL_NUM_THREADS",
        "NUMEXPR_NUM_THREADS",
        "VECLIB_MAXIMUM_THREADS",
        "GOTO_NUM_THREADS",
        "RAYON_NUM_THREADS",
        "TOKIO_WORKER_THREADS",
        "GOMAXPROCS",
        # Runtimes of languages.
        "GOGC",
        "GODEBUG",
        "GOMEMLIMIT",
        "PYTHONHASHSEED",
        "PYTHONMALLOC",
        "PYTHONDEVMODE",
        "PYTHONOPTIMIZE",
        "PYTHONDONTWRITEBYTECODE",
        "PYTHONUNBUFFERED",
        "PYTHONTRACEMALLOC",
        "PYTHONASYNCIODEBUG",
        "PYTHON_GIL",
        "PYTHON_JIT",
        "RUST_BACKTRACE",
        "RUST_LIB_BACKTRACE",
        "RUST_MIN_STACK",
        "JULIA_NUM_THREADS",
        "RUBY_YJIT_ENABLE",
        # Sanitizers and checkers.
        "ASAN_OPTIONS",
        "LSAN_OPTIONS",
        "MSAN_OPTIONS",
        "TSAN_OPTIONS",
        "UBSAN_OPTIONS",
        "G_SLICE",
        "G_DEBUG",
        # Sorting, case and dates cost what the locale makes them cost.
        "LANG",
        "LANGUAGE",
        "TZ",
        "POSIXLY_CORRECT",
        "CUDA_VISIBLE_DEVICES",
    }
)
ALLOWED_BEGINNINGS = ("MALLOC_", "OMP_", "OPENBLAS_", "BLIS_", "LC_")
WITHHELD = frozenset(
    {
        "PATH",
        "PYTHONPATH",
        "TMPDIR",
        "JAVA_TOOL_OPTIONS",
        "_JAVA_OPTIONS",
        "JDK_JAVA_OPTIONS",
        "NODE_OPTIONS",
        "RUBYOPT",
        "PERL5OPT",
        "RUSTFLAGS",
    }
)


def relevant(environment: Mapping[str, str]) -> dict[str, str]:
    """The variables of the list that are set, by name, with their values."""
    return {
        name: readable(environment[name])
        for name in sorted(environment)
        if name in ALLOWED or name.startswith(ALLOWED_BEGINNINGS)
    }


def withheld(environment: Mapping[str, str]) -> list[str]:
    """The variables that are set and matter, whose values are not recorded."""
    return sorted(WITHHELD & environment.keys())


def size_bytes(environment: Mapping[str, str]) -> int:
    """Bytes that the environment takes on the stack of every program that gets it.

    The size shifts the stack, and with it alignment (Mytkowicz et al., "Producing Wrong Data
    Without Doing Anything Obviously Wrong!", ASPLOS 2009, section 4).
    """
    return sum(
        len(name.encode("utf-8", "surrogateescape"))
        + len(value.encode("utf-8", "surrogateescape"))
        + 2
        for name, value in environment.items()
    )


def readable(text: str) -> str:
    """Text that any encoder takes: bytes that are no UTF-8 as ``\\xNN``."""
    return text.encode("utf-8", "surrogateescape").decode("utf-8", "backslashreplace")
