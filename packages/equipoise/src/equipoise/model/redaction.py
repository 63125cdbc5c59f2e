"""Values that a shared result may show: those of tuning variables; all others have placeholders.

The value of an environment variable may be a secret, and results are shared. A snapshot of the
environment records only the values of the known tuning variables, and a page, a document or an
export shows only these (``docs/reference/document.md``). Names are exact: a prefix such as ``LC_``
would let ``LC_API_TOKEN`` pass. To make a variable known, add its name here.

A placeholder is ``$NAME``, the name of the variable. A user who has set the variable can run a line
that contains it.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Callable

_OWN_PLACEHOLDER = re.compile(
    r"(?:[^=]*:)?(?P<name>[A-Za-z_][A-Za-z0-9_]*)=(?P<placeholder>\$(?P=name)(?:_[0-9]+)?)"
)
"""Assignment of a placeholder: ``TOKEN=$TOKEN``, or ``2:TOKEN=$TOKEN``, a value of ``--env``."""
_UNSAFE_BETWEEN_DOUBLE_QUOTES = re.compile(r"[\"\\`!$]")


def placeholder(name: str, number: int) -> str:
    """Return the text that stands for a hidden value of the variable.

    ``number`` counts the distinct values of one variable from 1: ``$TOKEN``, ``$TOKEN_2``.
    """
    return f"${name}" if number == 1 else f"${name}_{number}"


def quote_except_placeholders(word: str, quote: Callable[[str], str]) -> str:
    """Quote a word so that a shell expands the placeholders in it and nothing else.

    A placeholder counts only in an assignment to its own name (``TOKEN=$TOKEN``) that is a whole
    word of the command in the word. A line for an inner shell is left unchanged: that shell expands
    its placeholders. ``quote`` quotes a text for a shell.
    """
    placeholders = _placeholders_in(word)
    if not placeholders:
        return quote(word)
    pieces = re.split(rf"(=(?:{'|'.join(map(re.escape, placeholders))})(?![A-Za-z0-9_]))", word)
    literal = "".join(pieces[::2])
    if literal.isprintable() and not _UNSAFE_BETWEEN_DOUBLE_QUOTES.search(literal):
        return f'"{word}"'
    return "".join(
        f'="{piece[1:]}"' if place % 2 else quote(piece)
        for place, piece in enumerate(pieces)
        if piece
    )


def _placeholders_in(word: str) -> tuple[str, ...]:
    """Return the placeholders that are assigned in the word, the longest first."""
    try:
        parts = shlex.split(word)
    except ValueError:
        parts = [word]
    matches = map(_OWN_PLACEHOLDER.fullmatch, parts)
    return tuple(
        sorted({match["placeholder"] for match in matches if match}, key=len, reverse=True)
    )


_VARIABLES = {
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
    "numbers and places of threads": """
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
    "what sorting, case and dates cost": """
        LANG LANGUAGE LC_ADDRESS LC_ALL LC_COLLATE LC_CTYPE LC_IDENTIFICATION LC_MEASUREMENT
        LC_MESSAGES LC_MONETARY LC_NAME LC_NUMERIC LC_PAPER LC_TELEPHONE LC_TIME
        POSIXLY_CORRECT TZ
    """,
    "Equipoise itself": "EQUIPOISE_EVEN EQUIPOISE_INTERVENTION EQUIPOISE_PADDING",
}
"""Names of the tuning variables by what they set."""
TUNING_VARIABLES = frozenset(name for names in _VARIABLES.values() for name in names.split())
