# ruff: noqa: E501 (lines of C)
"""Thirty small kernels in C, as units of work: a call of a kernel does 100 units, or 101.

One unit more is 1 % more work, spread over the call like the other units.
"""

from __future__ import annotations

UNITS = 100
"""Units of work in a call of a kernel; the slower revision has one more."""
PRELUDE = """\
#include "equipoise_functions.h"
#include <stdlib.h>
#include <string.h>
#ifndef UNITS
#define UNITS 100
#endif
static uint32_t words[4096];
static unsigned char bytes[8192];
static float reals[2048];
static uint32_t ordered[1024];
static uint32_t next_of[1024];
static void prepare(void) {
    uint32_t state = 12345;
    for (int i = 0; i < 4096; i++) words[i] = state = state * 1664525u + 1013904223u;
    for (int i = 0; i < 8192; i++) bytes[i] = 'a' + (words[i & 4095] >> (i >> 12 << 3)) % 26;
    for (int i = 0; i < 8192; i += 1 + words[i & 4095] % 40) bytes[i] = " ,\\n09{}\\""[words[i & 4095] >> 29];
    for (int i = 0; i < 2048; i++) reals[i] = (float)(words[i] >> 8) / 16777216.0f;
    for (int i = 0; i < 1024; i++) ordered[i] = i * 4194304u + words[i] % 4000000u;
    for (int i = 0; i < 1024; i++) next_of[i] = (i * 389u + 71u) & 1023;
}
"""
BODIES: dict[str, str] = {
    "sum": "uint64_t s = 0; for (int i = 0; i < 40; i++) s += w[i] ^ (s >> 3); return s;",
    "xor_shift": "uint64_t x = w[0] | 1; for (int i = 0; i < 20; i++) { x ^= x << 13; x ^= x >> 7;"
    " x ^= x << 17; } return x;",
    "dot": "float s = 0; for (int i = 0; i < 24; i++) s += r[i] * r[i + 24]; return (uint64_t)(s * 1e6f);",
    "fnv": "uint64_t h = 14695981039346656037u; for (int i = 0; i < 24; i++) h = (h ^ b[i]) *"
    " 1099511628211u; return h;",
    "crc": "uint32_t c = ~0u; for (int i = 0; i < 6; i++) { c ^= b[i]; for (int j = 0; j < 8; j++)"
    " c = c >> 1 ^ (c & 1 ? 0xEDB88320u : 0); } return c;",
    "adler": "uint32_t x = 1, y = 0; for (int i = 0; i < 40; i++) { x += b[i]; y += x; }"
    " return (y % 65521) << 16 | x % 65521;",
    "murmur": "uint64_t h = w[1]; for (int i = 0; i < 12; i++) { h ^= h >> 33; h *="
    " 0xff51afd7ed558ccdu; h ^= w[i]; } return h;",
    "insertion_sort": "uint32_t v[10]; memcpy(v, w, sizeof v); for (int i = 1; i < 10; i++) {"
    " uint32_t x = v[i]; int j = i; while (j && v[j - 1] > x) { v[j] = v[j - 1]; j--; } v[j] = x; }"
    " return v[5];",
    "heapify": "uint32_t v[15]; memcpy(v, w, sizeof v); for (int i = 6; i >= 0; i--) { int p = i;"
    " while (2 * p + 1 < 15) { int c = 2 * p + 1; if (c < 14 && v[c + 1] > v[c]) c++;"
    " if (v[p] >= v[c]) break; uint32_t t = v[p]; v[p] = v[c]; v[c] = t; p = c; } } return v[0];",
    "binary_search": "uint64_t s = 0; for (int q = 0; q < 2; q++) { uint32_t x = w[q]; int l = 0,"
    " h = 1024; while (l < h) { int m = (l + h) / 2; if (ordered[m] < x) l = m + 1; else h = m; }"
    " s += l; } return s;",
    "find_byte": "int i = 0; while (i < 60 && b[i] != ' ') i++; return i;",
    "count_byte": "int n = 0; for (int i = 0; i < 48; i++) n += b[i] == 'e'; return n;",
    "parse_number": "uint64_t n = 0; for (int i = 0; i < 24; i++) { unsigned d = b[i] - '0';"
    " if (d < 10) n = n * 10 + d; else n += b[i]; } return n;",
    "hexadecimal": "uint64_t s = 0; for (int i = 0; i < 16; i++) { unsigned n = w[i] & 15;"
    " s = s * 31 + (n < 10 ? '0' + n : 'a' + n - 10); } return s;",
    "count_fields": "int n = 0, q = 0; for (int i = 0; i < 32; i++) { if (b[i] == '\"') q ^= 1;"
    " else if (b[i] == ',' && !q) n++; } return n;",
    "nesting": "int d = 0, m = 0; for (int i = 0; i < 32; i++) { if (b[i] == '{') { if (++d > m)"
    " m = d; } else if (b[i] == '}' && d) d--; } return m * 8 + d;",
    "count_letters": "int n = 0; for (int i = 0; i < 40; i++) n += (b[i] & 0xC0) != 0x80; return n;",
    "base64": 'static const char t[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz01234567'
    '89+/"; uint64_t s = 0; for (int i = 0; i < 15; i += 3) { uint32_t v = b[i] << 16 | b[i + 1] <<'
    " 8 | b[i + 2]; s = s * 7 + t[v >> 18] + t[v >> 12 & 63] + t[v >> 6 & 63] + t[v & 63]; } return s;",
    "matrix": "float s = 0; for (int i = 0; i < 4; i++) for (int j = 0; j < 4; j++) { float x = 0;"
    " for (int l = 0; l < 4; l++) x += r[4 * i + l] * r[16 + 4 * l + j]; s += x * (i + j); }"
    " return (uint64_t)(s * 1e6f);",
    "filter": "float s = 0; for (int i = 0; i < 6; i++) { float x = 0; for (int j = 0; j < 6; j++)"
    " x += r[i + j] * (float)(j + 1); s = s * 0.5f + x; } return (uint64_t)(s * 1e6f);",
    "mandelbrot": "float x = 0, y = 0, p = r[0] - 1, q = r[1] - 0.5f; int n = 0; while (n < 24 &&"
    " x * x + y * y < 4) { float t = x * x - y * y + p; y = 2 * x * y + q; x = t; n++; } return n;",
    "square_root": "double x = 1 + r[0], v = w[0]; for (int i = 0; i < 6; i++) x = 0.5 * (x + v / x);"
    " return (uint64_t)x;",
    "common_divisor": "uint32_t x = w[0] % 9973 + 1, y = w[1] % 9967 + 1; while (y) { uint32_t t = x % y;"
    " x = y; y = t; } return x;",
    "collatz": "uint64_t n = w[0] % 997 + 1; int i = 0; while (n != 1 && i < 40) { n = n & 1 ?"
    " 3 * n + 1 : n / 2; i++; } return i;",
    "divisors": "uint32_t n = w[0] % 4001, c = 0; for (uint32_t d = 3; d < 40; d += 2)"
    " c = c * 2 + (n % d == 0); return c;",
    "bits": "int n = 0; for (int i = 0; i < 12; i++) { uint32_t x = w[i]; x -= x >> 1 & 0x55555555u;"
    " x = (x & 0x33333333u) + (x >> 2 & 0x33333333u); n += (((x + (x >> 4)) & 0x0F0F0F0Fu) *"
    " 0x01010101u) >> 24; } return n;",
    "tree_walk": "uint32_t x = w[0], i = 0; while (i < 1023) i = 2 * i + 1 + (x > ordered[i]);"
    " return i;",
    "list_walk": "uint32_t i = w[0] & 1023; for (int n = 0; n < 16; n++) i = next_of[i]; return i;",
    "automaton": "int s = 0; for (int i = 0; i < 24; i++) switch (s) { case 0: s = b[i] == ' ' ? 1 :"
    " b[i] < 'm' ? 2 : 0; break; case 1: s = b[i] > 'c' ? 2 : 0; break; default: s = b[i] & 1; }"
    " return s;",
    "distance": "unsigned row[7]; for (int j = 0; j < 7; j++) row[j] = j; for (int i = 0; i < 6;"
    " i++) { unsigned d = row[0]++; for (int j = 0; j < 6; j++) { unsigned c = d + (b[i] != b[j + 9]);"
    " d = row[j + 1]; if (d + 1 < c) c = d + 1; if (row[j] + 1 < c) c = row[j] + 1; row[j + 1] = c; } }"
    " return row[6];",
}
"""Body of one unit of each kernel; ``w``, ``b`` and ``r`` point into the data."""


def source_of(name: str) -> str:
    """Return the C file of a kernel; ``UNITS`` and ``UNUSED`` are macros of the compiler's line."""
    return f"""{PRELUDE}
#ifdef UNUSED
/* What a commit adds that changes nothing. */
unsigned unused_table[UNUSED];
unsigned unused_one(unsigned x) {{ unsigned s = 0; for (unsigned i = 0; i < x; i++) s += i * x; return s ^ UNUSED; }}
#endif
static uint64_t unit(const uint32_t *w, const unsigned char *b, const float *r) {{
    {BODIES[name]}
}}
__attribute__((noinline)) uint64_t kernel_{name}(int units) {{
    uint64_t sum = 0;
    for (int k = 0; k < units; k++)
        sum = sum * 3 + unit(words + (k * 37 & 4031), bytes + (k * 71 & 8127), reals + (k * 29 & 1983));
    return sum;
}}
#ifdef UNUSED
unsigned unused_other(unsigned x) {{ while (x > UNUSED) x = x / 3 + 1; return x; }}
#endif
EQUIPOISE_SETUP {{ prepare(); }}
EQUIPOISE_BENCHMARK({name}) {{ int units = UNITS; EQUIPOISE_HIDE(units); return kernel_{name}(units); }}
"""
