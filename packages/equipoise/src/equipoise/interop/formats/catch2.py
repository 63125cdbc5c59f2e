"""Reads Catch2's XML report, of version 2 or 3: each benchmark is a process without iterations.

The report has the mean of each ``BENCHMARK`` in nanoseconds. A benchmark is called after its test
case, its sections and itself, such as ``Fibonacci/small/Fibonacci 20``. A test case runs once for
each of its sections, so a benchmark outside of the sections runs several times: its names get
numbers.
"""

from __future__ import annotations

from collections.abc import Iterator
from xml.etree import ElementTree

from equipoise.interop.reading import (
    TIME,
    Format,
    Process,
    Reading,
    SourceFile,
    finite_number,
    numbered,
    quote,
    with_version,
)

_ROOTS = ("Catch", "Catch2TestRun")
"""Root elements of version 2 and of version 3."""
_PATH_ELEMENTS = ("TestCase", "Section")
_MAX_DEPTH = 100


def _recognises(file: SourceFile) -> bool:
    beginning = file.beginning()
    return beginning.lstrip().startswith("<") and any(f"<{root} " in beginning for root in _ROOTS)


def _read(file: SourceFile) -> Reading:
    root = _root(file)
    names, times, failures = [], [], []
    for path, element in _elements(file, root, ()):
        name = "/".join(path)
        if element.tag != "BenchmarkResults":
            failures.append((name, _text(element)))
        elif (failed := element.find("failed")) is not None:
            failures.append((name, " ".join((failed.get("message") or "no message").split())))
        else:
            names.append(name)
            times.append(_seconds(file, name, element))
    return Reading(
        tool=with_version("Catch2", root.get("catch2-version")),
        metric=TIME,
        processes=tuple(
            Process(name, {TIME: seconds})
            for name, seconds in zip(numbered(names), times, strict=True)
        ),
        notes=tuple(f"{name} failed: {reason}" for name, reason in failures),
        failures=tuple(failures),
    )


def _root(file: SourceFile) -> ElementTree.Element:
    # Catch2 writes neither; an entity of a hostile file could become very long.
    if b"<!DOCTYPE" in file.content or b"<!ENTITY" in file.content:
        raise file.error("a report of Catch2 has no DOCTYPE and no ENTITY")
    try:
        root = ElementTree.fromstring(file.content)
    except (ElementTree.ParseError, LookupError, ValueError) as error:
        raise file.error(f"the report of Catch2 is cut off, or is not XML: {error}") from error
    if root.tag not in _ROOTS:
        raise file.error(f"{quote(root.tag)} is not the report of Catch2")
    return root


def _elements(
    file: SourceFile, parent: ElementTree.Element, path: tuple[str, ...]
) -> Iterator[tuple[tuple[str, ...], ElementTree.Element]]:
    """Yield benchmarks and failures, each with the names from its test case to itself."""
    if len(path) > _MAX_DEPTH:
        raise file.error(f"the sections are nested deeper than {_MAX_DEPTH}")
    for element in parent:
        if element.tag == "BenchmarkResults":
            yield (*path, element.get("name", "benchmark")), element
        elif element.tag in ("Exception", "FatalErrorCondition", "Failure") or (
            element.tag == "Expression" and element.get("success") == "false"
        ):
            yield path, element
        elif element.tag in _PATH_ELEMENTS:
            yield from _elements(file, element, (*path, element.get("name", "")))
        elif element.tag == "Group":
            yield from _elements(file, element, path)


def _text(element: ElementTree.Element) -> str:
    return " ".join("".join(element.itertext()).split()) or "no message"


def _seconds(file: SourceFile, name: str, element: ElementTree.Element) -> float:
    mean = element.find("mean")
    text = "" if mean is None else mean.get("value", "")
    nanoseconds = finite_number(text)
    if nanoseconds is None:
        raise file.error(f"{quote(name)} has no mean")
    return 1e-9 * nanoseconds


FORMAT = Format("catch2", "./tests --reporter xml --out FILE", _recognises, _read)
