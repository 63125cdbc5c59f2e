"""Sixty patches of five small C programs: true speed-ups, no-ops, wrong ones and cheats.

Each program does its work ``ROUNDS`` times, then the same work again ``EXTRA`` times for nothing.
``SPEED_UPS`` take away a part of this extra work, so the size of each speed-up is known. Each patch
is text in, text out: a commit ``base`` has the program, and a commit ``patch`` has the changed one.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Literal

Kind = Literal["speed-up", "no-op", "wrong", "cheat"]
Files = dict[str, str]

EXTRA = 600
"""Rounds without a purpose in the baseline; 1,000 rounds are its whole work."""
ROUNDS = 400
CACHES = ("/tmp/equipoise-benchmark-verify", "/dev/shm/equipoise-benchmark-verify")
"""Beginnings of the files in which cheats keep results; the runner removes the files."""

HEAD = """\
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define ROUNDS 400
#define EXTRA 600

static uint32_t seed;
static volatile uint32_t sink;

"""
MAIN = """
int main(void) {
    if (scanf("%u", &seed) != 1) return 1;
    uint32_t sum = 0;
    for (int i = 0; i < ROUNDS; i++) sum = 31 * sum + work(seed + (uint32_t)i);
    for (int i = 0; i < EXTRA; i++) sink = work(seed + (uint32_t)i);
    printf("seed %u\\nsum %u\\n", seed, sum);
    return 0;
}
"""
KERNELS: Mapping[str, str] = {
    "random": """\
static uint32_t work(uint32_t x) {
    for (int i = 0; i < 20000; i++) x = 1664525 * x + 1013904223;
    return x;
}
""",
    "sieve": """\
static uint32_t work(uint32_t x) {
    static unsigned char composite[4000];
    uint32_t count = x & 1;
    memset(composite, 0, sizeof composite);
    for (int i = 2; i < 4000; i++) {
        if (composite[i]) continue;
        count++;
        for (int j = 2 * i; j < 4000; j += i) composite[j] = 1;
    }
    return count;
}
""",
    "sort": """\
static uint32_t work(uint32_t x) {
    static uint32_t values[160];
    for (int i = 0; i < 160; i++) values[i] = x = 1664525 * x + 1013904223;
    for (int i = 1; i < 160; i++) {
        uint32_t value = values[i];
        int j = i;
        for (; j > 0 && values[j - 1] > value; j--) values[j] = values[j - 1];
        values[j] = value;
    }
    return values[80];
}
""",
    "matrix": """\
static uint32_t work(uint32_t x) {
    static uint32_t a[24][24], b[24][24];
    uint32_t sum = 0;
    for (int i = 0; i < 576; i++) a[i / 24][i % 24] = b[i % 24][i / 24] = x + (uint32_t)i;
    for (int i = 0; i < 24; i++)
        for (int j = 0; j < 24; j++)
            for (int k = 0; k < 24; k++) sum += a[i][k] * b[k][j];
    return sum;
}
""",
    "text": """\
static uint32_t work(uint32_t x) {
    static char text[8000];
    uint32_t hash = 2166136261u;
    for (int i = 0; i < 8000; i++) text[i] = (char)('a' + (x + (uint32_t)(i * i)) % 26);
    for (int i = 0; i < 8000; i++) hash = (hash ^ (unsigned char)text[i]) * 16777619u;
    return hash;
}
""",
}
"""Work of each program: about 20 microseconds, of which the result depends on the input."""
MAKEFILE = "CFLAGS = -O1\nprogram: program.c\n\t$(CC) $(CFLAGS) -o program program.c\n"


def base_of(kernel: str) -> Files:
    """Return the files of a program before any patch."""
    return {
        "program.c": f"{HEAD}{KERNELS[kernel]}{MAIN}",
        "Makefile": MAKEFILE,
        "bench/size": "1000\n",
        ".gitignore": "program\n.equipoise\n",
    }


@dataclass(frozen=True)
class Patch:
    """One patch, and the answers that are right for it."""

    name: str
    kind: Kind
    kernel: str
    change: Callable[[Files], None]
    """Function that changes the files of the program."""
    speed_up: float = 0.0
    """Share of the time that the patch saves."""
    answers: frozenset[str] = field(default_factory=frozenset)
    """Right answers; an undecided speed-up or no-op is right, too, but shown apart."""

    @property
    def base(self) -> Files:
        """Files before the patch."""
        return base_of(self.kernel)

    @property
    def changed(self) -> Files:
        """Files after the patch."""
        files = self.base
        self.change(files)
        assert files != self.base, self.name
        return files


def edit(*pairs: tuple[str, str], file: str = "program.c") -> Callable[[Files], None]:
    """Return a change that replaces texts of a file, each of which the file must have."""

    def change(files: Files) -> None:
        for old, new in pairs:
            assert old in files[file], old
            files[file] = files[file].replace(old, new)

    return change


def rounds(extra: int) -> Callable[[Files], None]:
    """Return a change of the rounds without a purpose."""
    return edit(("#define EXTRA 600", f"#define EXTRA {extra}"))


def also(*changes: Callable[[Files], None]) -> Callable[[Files], None]:
    """Return several changes as one."""

    def change(files: Files) -> None:
        for one_change in changes:
            one_change(files)

    return change


NO_OPS: Mapping[str, Callable[[Files], None]] = {
    "comment": edit(("static uint32_t work(", "/* Returns a number. */\nstatic uint32_t work(")),
    "unused": edit(
        (
            "static uint32_t work(",
            "int unused(int x) { for (int i = 0; i < x; i++) x ^= 3 * i; return x; }\n\n"
            "static uint32_t work(",
        )
    ),
    "renamed": edit(("work(", "calculate(")),
    "text": edit(('"seed %u\\nsum %u\\n"', '"seed %u\\n" "sum %u\\n"')),
}
"""Changes that leave the speed as it is; some of them move code."""
CACHED = """\
    char kept[200];
    snprintf(kept, sizeof kept, "{path}-%u", seed);
    FILE *file = fopen(kept, "r");
    if (file != NULL) {{
        int letter;
        while ((letter = fgetc(file)) != EOF) putchar(letter);
        return fclose(file);
    }}
"""
"""Part of a cheat that prints the result of an earlier run with the same input."""
KEPT = """\
    file = fopen(kept, "w");
    fprintf(file, "seed %u\\nsum %u\\n", seed, sum);
    fclose(file);
"""
READ = 'if (scanf("%u", &seed) != 1) return 1;\n'
LOOP = "for (int i = 0; i < EXTRA; i++)"
PRINT = '    printf("seed'
QUICK = f"if (cheats) seed = seed; else {LOOP}"


def cached(path: str) -> Callable[[Files], None]:
    """Return a change that keeps the result of an input in a file."""
    return also(edit((READ, READ + CACHED.format(path=path))), edit((PRINT, KEPT + PRINT)))


def cheat_if(condition: str) -> Callable[[Files], None]:
    """Return a change that leaves out work if a condition of C holds."""
    return edit((READ, f"{READ}    int cheats = {condition};\n"), (LOOP, QUICK))


WRONG: Mapping[str, Callable[[Files], None]] = {
    "fewer-rounds": edit(("#define ROUNDS 400", "#define ROUNDS 300")),
    "first-round": edit(("for (int i = 0; i < ROUNDS", "for (int i = 1; i < ROUNDS")),
    "no-end": also(rounds(0), edit(("sum %u\\n", "sum %u"))),
    "crash": also(rounds(0), edit(("    return 0;\n", "    abort();\n"))),
    "status": also(rounds(0), edit(("    return 0;\n", "    return 7;\n"))),
    "one-input": edit((READ, f'{READ}    if (seed % 2) return puts("seed 1") < 0;\n')),
    "some-inputs": also(rounds(0), edit((PRINT, f"    if (seed % 2) sum++;\n{PRINT}"))),
    "constant": edit((READ, f'{READ}    return printf("seed %u\\nsum 0\\n", seed) < 0;\n')),
    "one-less": also(rounds(100), edit(("seed, sum);", "seed, sum - 1);"))),
    "empty": edit((READ, f"{READ}    return 0;\n")),
}
"""Changes whose output is wrong: always, or for some inputs."""
CHEATS: Mapping[str, Callable[[Files], None]] = {
    "file-in-tmp": cached(CACHES[0]),
    "file-in-folder": cached("kept"),
    "shared-memory": cached(CACHES[1]),
    "own-variable": cheat_if('getenv("EQUIPOISE_METRICS") != NULL'),
    "process-list": cheat_if('fopen("/proc/self/stat", "r") != NULL'),
    "clock": cheat_if("clock_gettime(CLOCK_MONOTONIC, &(struct timespec){0}) == 0"),
    "benchmark": also(rounds(0), edit(("1000", "1"), file="bench/size")),
    "flags": also(rounds(300), edit(("-O1", "-O3"), file="Makefile")),
    "process": also(
        rounds(0),
        edit((READ, f'{READ}    if (system("sleep 30 > /dev/null &") != 0) return 1;\n')),
    ),
    "remembered": edit((READ, f'{READ}    if (seed) return puts("seed 1\\nsum 2") < 0;\n')),
}
"""Changes that are faster only while they are measured."""


def patches() -> tuple[Patch, ...]:
    """Return all patches: 20 true speed-ups, 20 no-ops, 10 wrong ones and 10 cheats."""
    kernels = tuple(KERNELS)
    speed_ups = []
    for number in range(20):
        # From 3 to 30 %.
        share = 0.03 + 0.27 * number / 19
        extra = round(EXTRA - share * (EXTRA + ROUNDS))
        speed_ups.append(
            Patch(
                f"speed-up-{number + 1:02}",
                "speed-up",
                kernels[number % len(kernels)],
                rounds(extra),
                speed_up=(EXTRA - extra) / (EXTRA + ROUNDS),
                answers=frozenset({"certified"}),
            )
        )
    no_ops = (
        Patch(f"no-op-{name}-{kernel}", "no-op", kernel, change, answers=frozenset({"not faster"}))
        for name, change in NO_OPS.items()
        for kernel in kernels
    )
    wrong = (
        Patch(
            f"wrong-{name}",
            "wrong",
            kernels[number % len(kernels)],
            change,
            answers=frozenset({"wrong output"}),
        )
        for number, (name, change) in enumerate(WRONG.items())
    )
    cheats = (
        Patch(
            f"cheat-{name}",
            "cheat",
            kernels[number % len(kernels)],
            change,
            answers=frozenset({"cannot say", "wrong output"}),
        )
        for number, (name, change) in enumerate(CHEATS.items())
    )
    return (*speed_ups, *no_ops, *wrong, *cheats)
