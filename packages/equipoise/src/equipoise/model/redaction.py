"""Environment variables whose values a shared result may show, and placeholders for all others.

The value of an environment variable may be a secret, and results are shared. A result shows only
the values of known tuning variables (``docs/reference/document.md``), listed at the end of this
file. Names are exact: a prefix such as ``LC_`` would let ``LC_API_TOKEN`` pass.

The placeholder of a hidden value is ``$NAME``, the name of the variable. A user who has set the
variable can run a command line that contains the placeholder.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Callable

_ASSIGNED_PLACEHOLDER = re.compile(
    r"(?:[^=]*:)?(?P<name>[A-Za-z_][A-Za-z0-9_]*)=(?P<placeholder>\$(?P=name)(?:_[0-9]+)?)"
)
"""Assignment of a placeholder: ``TOKEN=$TOKEN``, or for the second command ``2:TOKEN=$TOKEN``."""
_UNSAFE_BETWEEN_DOUBLE_QUOTES = re.compile(r"[\"\\`!$]")


def placeholder(name: str, number: int) -> str:
    """Return the placeholder for a hidden value of a variable.

    ``number`` is the number, from 1, of this value among the distinct values of the variable:
    ``$TOKEN``, ``$TOKEN_2``.
    """
    return f"${name}" if number == 1 else f"${name}_{number}"


def quote_except_placeholders(argument: str, quote: Callable[[str], str]) -> str:
    """Quote an argument so that a shell expands the placeholders in it and nothing else.

    A placeholder is expanded only if a whole word assigns it to its own variable
    (``TOKEN=$TOKEN``). The argument of ``sh -c '…'`` stays quoted, because the inner shell expands
    its placeholders. ``quote`` is the function that quotes any other text.
    """
    placeholders = _placeholders_in(argument)
    if not placeholders:
        return quote(argument)
    # Pieces with an odd index are assigned placeholders; the others are literal text.
    pieces = re.split(rf"(=(?:{'|'.join(map(re.escape, placeholders))})(?![A-Za-z0-9_]))", argument)
    literals = "".join(pieces[::2])
    if literals.isprintable() and not _UNSAFE_BETWEEN_DOUBLE_QUOTES.search(literals):
        return f'"{argument}"'
    return "".join(
        f'="{piece[1:]}"' if index % 2 else quote(piece)
        for index, piece in enumerate(pieces)
        if piece
    )


def _placeholders_in(argument: str) -> tuple[str, ...]:
    """Return the placeholders that are assigned in an argument, the longest first."""
    try:
        words = shlex.split(argument)
    except ValueError:
        words = [argument]
    matches = map(_ASSIGNED_PLACEHOLDER.fullmatch, words)
    return tuple(
        sorted({match["placeholder"] for match in matches if match}, key=len, reverse=True)
    )


_VARIABLES_BY_TOPIC = {
    "the dynamic loader": "LD_AUDIT LD_BIND_NOW LD_DEBUG LD_LIBRARY_PATH LD_PRELOAD LD_PROFILE",
    "allocators": """
        GLIBC_TUNABLES G_DEBUG G_SLICE MALLOC_ARENA_MAX MALLOC_ARENA_TEST MALLOC_CHECK_
        MALLOC_CONF MALLOC_MMAP_MAX_ MALLOC_MMAP_THRESHOLD_ MALLOC_PERTURB_
        MALLOC_TCACHE_COUNT_ MALLOC_TOP_PAD_ MALLOC_TRACE MALLOC_TRIM_THRESHOLD_
        MIMALLOC_ALLOW_LARGE_OS_PAGES MIMALLOC_ARENA_EAGER_COMMIT MIMALLOC_EAGER_COMMIT
        MIMALLOC_LARGE_OS_PAGES MIMALLOC_PURGE_DELAY MIMALLOC_RESERVE_HUGE_OS_PAGES
        MIMALLOC_SHOW_STATS MIMALLOC_VERBOSE TCMALLOC_MAX_TOTAL_THREAD_CACHE_BYTES
        TCMALLOC_RELEASE_RATE
    """,
    "number of threads, and their CPUs": """
        BLIS_IC_NT BLIS_JC_NT BLIS_NUM_THREADS GOMAXPROCS GOTO_NUM_THREADS JULIA_NUM_THREADS
        MKL_DYNAMIC MKL_NUM_THREADS NUMEXPR_MAX_THREADS NUMEXPR_NUM_THREADS OMP_DISPLAY_ENV
        OMP_DYNAMIC OMP_MAX_ACTIVE_LEVELS OMP_NESTED OMP_NUM_THREADS OMP_PLACES OMP_PROC_BIND
        OMP_SCHEDULE OMP_STACKSIZE OMP_THREAD_LIMIT OMP_WAIT_POLICY OPENBLAS_MAIN_FREE
        OPENBLAS_NUM_THREADS POLARS_MAX_THREADS RAYON_NUM_THREADS TOKIO_WORKER_THREADS
        VECLIB_MAXIMUM_THREADS
    """,
    "kernels of linear algebra": """
        BLIS_ARCH_DEBUG BLIS_ARCH_TYPE CUDA_VISIBLE_DEVICES MKL_DEBUG_CPU_TYPE
        MKL_ENABLE_INSTRUCTIONS OPENBLAS_CORETYPE OPENBLAS_VERBOSE
    """,
    "run-time systems of languages": """
        GODEBUG GOGC GOMEMLIMIT PERL_HASH_SEED PERL_PERTURB_KEYS PYTHONASYNCIODEBUG
        PYTHONDEVMODE PYTHONDONTWRITEBYTECODE PYTHONHASHSEED PYTHONMALLOC PYTHONOPTIMIZE
        PYTHONTRACEMALLOC PYTHONUNBUFFERED PYTHON_GIL PYTHON_JIT RUBY_YJIT_ENABLE
        RUST_BACKTRACE RUST_LIB_BACKTRACE RUST_MIN_STACK
    """,
    "sanitizers": "ASAN_OPTIONS LSAN_OPTIONS MSAN_OPTIONS TSAN_OPTIONS UBSAN_OPTIONS",
    "locale: sorting, case and dates": """
        LANG LANGUAGE LC_ADDRESS LC_ALL LC_COLLATE LC_CTYPE LC_IDENTIFICATION LC_MEASUREMENT
        LC_MESSAGES LC_MONETARY LC_NAME LC_NUMERIC LC_PAPER LC_TELEPHONE LC_TIME
        POSIXLY_CORRECT TZ
    """,
    "Equipoise itself": "EQUIPOISE_EVEN EQUIPOISE_INTERVENTION EQUIPOISE_PADDING",
}
"""Names of the tuning variables, by the topic that they control."""
TUNING_VARIABLES = frozenset(" ".join(_VARIABLES_BY_TOPIC.values()).split())
