"""The known tuning variables: the environment variables whose values are recorded and shown.

The value of an environment variable may be a secret, and results are passed on. A snapshot of the
environment records the values of these variables only, and a page, a document or an export shows
only their values (``docs/document.md``). Names are exact: a beginning such as ``LC_`` would let
``LC_API_TOKEN`` pass. To make a variable known, add its name here.
"""

from __future__ import annotations

_LOADER = (
    "LD_AUDIT",
    "LD_BIND_NOW",
    "LD_DEBUG",
    "LD_LIBRARY_PATH",
    "LD_PRELOAD",
    "LD_PROFILE",
)
_ALLOCATORS = (
    "GLIBC_TUNABLES",
    "G_DEBUG",
    "G_SLICE",
    "MALLOC_ARENA_MAX",
    "MALLOC_ARENA_TEST",
    "MALLOC_CHECK_",
    "MALLOC_CONF",
    "MALLOC_MMAP_MAX_",
    "MALLOC_MMAP_THRESHOLD_",
    "MALLOC_PERTURB_",
    "MALLOC_TCACHE_COUNT_",
    "MALLOC_TOP_PAD_",
    "MALLOC_TRACE",
    "MALLOC_TRIM_THRESHOLD_",
    "MIMALLOC_ALLOW_LARGE_OS_PAGES",
    "MIMALLOC_ARENA_EAGER_COMMIT",
    "MIMALLOC_EAGER_COMMIT",
    "MIMALLOC_LARGE_OS_PAGES",
    "MIMALLOC_PURGE_DELAY",
    "MIMALLOC_RESERVE_HUGE_OS_PAGES",
    "MIMALLOC_SHOW_STATS",
    "MIMALLOC_VERBOSE",
    "TCMALLOC_MAX_TOTAL_THREAD_CACHE_BYTES",
    "TCMALLOC_RELEASE_RATE",
)
_THREADS = (
    "BLIS_IC_NT",
    "BLIS_JC_NT",
    "BLIS_NUM_THREADS",
    "GOMAXPROCS",
    "GOTO_NUM_THREADS",
    "JULIA_NUM_THREADS",
    "MKL_DYNAMIC",
    "MKL_NUM_THREADS",
    "NUMEXPR_MAX_THREADS",
    "NUMEXPR_NUM_THREADS",
    "OMP_DISPLAY_ENV",
    "OMP_DYNAMIC",
    "OMP_MAX_ACTIVE_LEVELS",
    "OMP_NESTED",
    "OMP_NUM_THREADS",
    "OMP_PLACES",
    "OMP_PROC_BIND",
    "OMP_SCHEDULE",
    "OMP_STACKSIZE",
    "OMP_THREAD_LIMIT",
    "OMP_WAIT_POLICY",
    "OPENBLAS_MAIN_FREE",
    "OPENBLAS_NUM_THREADS",
    "POLARS_MAX_THREADS",
    "RAYON_NUM_THREADS",
    "TOKIO_WORKER_THREADS",
    "VECLIB_MAXIMUM_THREADS",
)
_LINEAR_ALGEBRA = (
    "BLIS_ARCH_DEBUG",
    "BLIS_ARCH_TYPE",
    "CUDA_VISIBLE_DEVICES",
    "MKL_DEBUG_CPU_TYPE",
    "MKL_ENABLE_INSTRUCTIONS",
    "OPENBLAS_CORETYPE",
    "OPENBLAS_VERBOSE",
)
_LANGUAGES = (
    "GODEBUG",
    "GOGC",
    "GOMEMLIMIT",
    "PERL_HASH_SEED",
    "PERL_PERTURB_KEYS",
    "PYTHONASYNCIODEBUG",
    "PYTHONDEVMODE",
    "PYTHONDONTWRITEBYTECODE",
    "PYTHONHASHSEED",
    "PYTHONMALLOC",
    "PYTHONOPTIMIZE",
    "PYTHONTRACEMALLOC",
    "PYTHONUNBUFFERED",
    "PYTHON_GIL",
    "PYTHON_JIT",
    "RUBY_YJIT_ENABLE",
    "RUST_BACKTRACE",
    "RUST_LIB_BACKTRACE",
    "RUST_MIN_STACK",
)
_SANITIZERS = (
    "ASAN_OPTIONS",
    "LSAN_OPTIONS",
    "MSAN_OPTIONS",
    "TSAN_OPTIONS",
    "UBSAN_OPTIONS",
)
_LOCALE = (
    # Sorting, case and dates cost what the locale makes them cost.
    "LANG",
    "LANGUAGE",
    "LC_ADDRESS",
    "LC_ALL",
    "LC_COLLATE",
    "LC_CTYPE",
    "LC_IDENTIFICATION",
    "LC_MEASUREMENT",
    "LC_MESSAGES",
    "LC_MONETARY",
    "LC_NAME",
    "LC_NUMERIC",
    "LC_PAPER",
    "LC_TELEPHONE",
    "LC_TIME",
    "POSIXLY_CORRECT",
    "TZ",
)
_SET_BY_EQUIPOISE = (
    "EQUIPOISE_EVEN",
    "EQUIPOISE_INTERVENTION",
    "EQUIPOISE_PADDING",
)

TUNING_VARIABLES = frozenset(
    (
        *_LOADER,
        *_ALLOCATORS,
        *_THREADS,
        *_LINEAR_ALGEBRA,
        *_LANGUAGES,
        *_SANITIZERS,
        *_LOCALE,
        *_SET_BY_EQUIPOISE,
    )
)
