"""Java: JMH, as a jar with all classes. Each benchmark runs in processes of its own.

Equipoise asks JMH for these things:

- ``-lp`` lists the benchmarks and the values of their parameters. Each combination of values is a
  benchmark: ``demo.Sort.quick (size = 10)``.
- ``-e`` with a negative regular expression leaves out all other benchmarks, because regular
  expressions of the user would choose more. ``-p`` chooses a value of a parameter.
- ``-f 1 -wf 0`` starts one fork: one trial is one process that measures. The options ``-wi``,
  ``-w``, ``-i`` and ``-r`` make it short. They replace the annotations ``@Fork``, ``@Warmup`` and
  ``@Measurement``, but not the user's own options.
  The time is the median of the iterations: one that the host interrupted changes a mean of five.
- ``-foe true`` ends a benchmark that throws an exception; without it, JMH leaves it out.
- ``-prof gc`` reports the bytes of an operation, if a gate compares ``allocated_bytes``. They are
  rounded to the byte, because JMH's own allocations add a fraction of a byte.
- ``-rf json -rff FILE`` keeps results apart from the lines that a benchmark prints.

JMH splits the values of ``-p`` at commas. So a parameter whose values have commas, newlines or
control characters is not chosen: one process runs all its values, and the time is their mean. Only
the value ``a, b`` is run as the two values ``a`` and ``b``, because ``-lp`` prints both alike.

``find`` knows Maven's plugins shade and assembly, and Gradle's plugin me.champeau.jmh.
"""

from __future__ import annotations

import itertools
import math
import re
import shlex
import statistics
import subprocess
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from xml.etree import ElementTree

from equipoise.interop.formats import jmh
from equipoise.interop.reading import TIME, Process, mean, read_within_bounds
from equipoise.model.errors import UnusableInput
from equipoise.suites.running import run
from equipoise.suites.searching import files_named, first_file_with, text_in
from equipoise.suites.tool import (
    BenchmarkTool,
    Command,
    FoundSuite,
    Listing,
    Measurement,
    PrintedLines,
    ToolCounts,
)

_COMMAND = ("java", "-jar", "target/benchmarks.jar")
"""Command for the jar of JMH's own Maven archetype."""
_BUILD = "mvn -q -B -DskipTests package"
_SHORT_RUN = (
    ("-f", "1"),
    ("-wf", "0"),
    ("-wi", "2"),
    ("-w", "100ms"),
    ("-i", "5"),
    ("-r", "100ms"),
    ("-foe", "true"),
)
_MODES = ("avgt", "sample", "thrpt", "ss")
"""Modes of JMH. If a benchmark has several modes, the first of these gives ``time_s``."""
_BYTES = "allocated_bytes"
_ALLOCATED_BYTES = re.compile(r"\W*gc\.alloc\.rate\.norm")
"""Metric of ``-prof gc``: bytes per operation. Some versions write a dot before the name."""

_GRADLE_PLUGIN = (
    # Neither a comment nor a plugin that only other projects apply.
    r"^(?!\s*//)(?!.*\bapply\W+false)"
    r".*(\bme\.champeau\.(gradle\.)?jmh\b|\blibs\.plugins\.[\w.]*jmh\b)"
)

_MAX_BENCHMARKS = 10_000
_LIST_START = "Benchmarks:"
_LISTED_NAME = re.compile(r"[\w$]+(\.[\w$]+)+")
_LISTED_PARAMETER = re.compile(r'  param "(.+?)" = \{(.*)\}')

_MAX_HEAD_BYTES = 4096
_MAX_TAIL_BYTES = 1 << 18
_VERSION = re.compile(r"^# JMH version: (\S+)", re.MULTILINE)
_BENCHMARK = re.compile(r"^# Benchmark: (\S+)", re.MULTILINE)
_FAILURE = re.compile(r"<failure(?:: (?P<reason>.*))?>\s*(?P<exception>.*)")
"""Failure of a benchmark in JMH's output, with a reason or before an exception."""


def _measure(command: Command, folder: Path) -> Iterator[Measurement]:
    """Run a command with a single benchmark; yield its times, and the allocated bytes if known."""
    if {"-rf", "-rff"} & {*command}:
        raise SystemExit("remove -rf and -rff from the command: Equipoise adds both to JMH")
    results, output = folder / "results.json", folder / "output"
    command = (*_with_last_parameters(command), "-rf", "json", "-rff", str(results))
    try:
        # On standard error, JMH writes a stack trace of its own.
        run(command, output, stderr=subprocess.STDOUT)
    except SystemExit as error:
        raise SystemExit(_failure_in(output) or error.code) from None
    if not results.exists() or not results.stat().st_size:
        raise SystemExit(f"{command[0]} wrote no results: it does not run JMH")
    reading = jmh.FORMAT.read(read_within_bounds("the results of JMH", results))
    names = sorted({process.benchmark for process in reading.processes})
    if len(names) != 1:
        problem = f"measured {len(names)} benchmarks in one process: {', '.join(names[:3])}"
        raise SystemExit(f"{reading.tool} {problem if names else 'measured no benchmark'}")
    yield from _measurements(reading.processes)


def _measurements(processes: Sequence[Process]) -> Iterator[Measurement]:
    """Yield the time in each mode, the mean over forks, and the mean of the allocated bytes."""
    modes = sorted({process.levels["mode"] for process in processes}, key=_mode_rank)
    for mode in modes:
        times = [_median_time(process) for process in processes if process.levels["mode"] == mode]
        yield Measurement(TIME if mode == modes[0] else f"{mode}_{TIME}", mean(times), "s")
    allocated_bytes = [
        mean(values)
        for process in processes
        for name, values in process.iterations.items()
        if _ALLOCATED_BYTES.fullmatch(name)
    ]
    if allocated_bytes:
        # JMH's own allocations are a fraction of a byte of each operation.
        yield Measurement(_BYTES, float(round(mean(allocated_bytes))), "B")


def _median_time(process: Process) -> float:
    """Return the median seconds of the iterations of a fork."""
    if jmh.OPERATIONS in process.iterations:
        return 1.0 / statistics.median(process.iterations[jmh.OPERATIONS])
    return statistics.median(process.iterations[TIME])


def _mode_rank(mode: str) -> int:
    # A parameter of a benchmark may have the name "mode", too.
    return _MODES.index(mode) if mode in _MODES else len(_MODES)


def _with_last_parameters(command: Command) -> tuple[str, ...]:
    """Return a command with only the last ``-p`` of each parameter: JMH runs the values of all."""
    kept: list[str] = []
    chosen: set[str] = set()
    for index in range(len(command) - 1, -1, -1):
        is_parameter = command[index] == "-p" and kept and "=" in kept[-1]
        name = kept[-1].partition("=")[0] if is_parameter else ""
        if name and name in chosen:
            kept.pop()
            continue
        if name:
            chosen.add(name)
        kept.append(command[index])
    return tuple(reversed(kept))


def _failure_in(output: Path) -> str | None:
    """Return the reason in JMH's output why a benchmark failed; ``None`` if there is none."""
    if not output.exists():
        return None
    with output.open("rb") as file:
        head = file.read(_MAX_HEAD_BYTES).decode("utf-8", "replace")
        file.seek(max(0, output.stat().st_size - _MAX_TAIL_BYTES))
        failure = _FAILURE.search(file.read().decode("utf-8", "replace"))
    if failure is None:
        return None
    version, benchmark = _VERSION.search(head), _BENCHMARK.search(head)
    tool = f"JMH {version[1]}" if version else "JMH"
    name = benchmark[1] if benchmark else "the benchmark"
    return f"{tool}: {name} failed: {failure['reason'] or failure['exception']}"


def _list(printed_lines: PrintedLines) -> Mapping[str, tuple[str, ...]]:
    """Return the options that choose each combination of the parameters of each benchmark.

    Raise `UnusableInput` if there are too many combinations.
    """
    parameters = _listed_parameters(printed_lines("-l"), printed_lines("-lp"))
    count = sum(math.prod(map(len, values.values())) for values in parameters.values())
    if count > _MAX_BENCHMARKS:
        raise UnusableInput(
            f"JMH lists {count} benchmarks with parameters, more than {_MAX_BENCHMARKS}",
            hint="choose some of them: add a regular expression, or -p NAME=VALUE for a parameter",
        )
    selections: dict[str, tuple[str, ...]] = {}
    for benchmark, values in parameters.items():
        only = ("-e", f"^(?!{re.escape(benchmark)}$)")
        for combination in itertools.product(*values.values()):
            choices = list(zip(values, combination, strict=True))
            described = ", ".join(f"{parameter} = {value}" for parameter, value in choices)
            name = f"{benchmark} ({described})" if choices else benchmark
            options = (("-p", f"{parameter}={value}") for parameter, value in choices)
            selections[name] = (*only, *itertools.chain.from_iterable(options))
    return selections


def _listed_parameters(
    name_lines: Sequence[str], lines: Sequence[str]
) -> dict[str, dict[str, list[str]]]:
    """Return the values of the parameters that can be chosen, by benchmark and parameter.

    The arguments are what ``-l`` and ``-lp`` print. Only ``-l`` tells names from lines of values.
    """
    # A benchmark with several modes is listed several times. A program may print other lines first.
    list_lines = itertools.dropwhile(lambda line: line.strip() != _LIST_START, name_lines)
    benchmarks: dict[str, dict[str, list[str]]] = {
        line: {} for line in list_lines if _LISTED_NAME.fullmatch(line)
    }
    benchmark = None
    for line in lines:
        parameter = _LISTED_PARAMETER.fullmatch(line)
        if line in benchmarks:
            benchmark = line
        elif benchmark is not None and parameter is not None:
            values = parameter[2].split(", ")
            if not any("," in value for value in values):
                benchmarks[benchmark][parameter[1]] = values
    return benchmarks


def _find(folder: Path) -> FoundSuite | None:
    return _find_maven(folder) or _find_gradle(folder)


def _find_maven(folder: Path) -> FoundSuite | None:
    root = folder / "pom.xml"
    if not root.is_file():
        return None
    for pom in files_named(folder, r"pom\.xml"):
        file, project = pom.relative_to(folder), _project_in(pom)
        # Below src are templates of projects.
        jar = None if project is None or "src" in file.parts else _jar_of(project)
        if jar is None:
            continue
        if pom == root:
            build = _BUILD
        elif file.parent in _modules_of(folder, Path()):
            build = f"{_BUILD} -am -pl {shlex.quote(str(file.parent))}"
        else:
            build = f"{_BUILD} -f {shlex.quote(str(file))}"
        command = ("java", "-jar", str(file.parent / "target" / jar))
        return FoundSuite(f"{file} builds {jar} with jmh-core", command, build)
    return None


def _project_in(pom: Path) -> ElementTree.Element | None:
    """Return the root element of a file of Maven; ``None`` if it is damaged or has entities."""
    text = text_in(pom)
    if "<!DOCTYPE" in text or "<!ENTITY" in text:
        return None
    try:
        return ElementTree.fromstring(text)
    except (ElementTree.ParseError, ValueError):
        # Maven will name the error.
        return None


def _modules_of(folder: Path, module: Path) -> set[Path]:
    """Return the folders of the modules that Maven builds together with a module."""
    modules: set[Path] = set()
    project = _project_in(folder / module / "pom.xml")
    for element in [] if project is None else project.findall("{*}modules/{*}module"):
        name = (element.text or "").strip()
        inner = module / name
        if name and ".." not in inner.parts and inner != module:
            modules |= {inner, *_modules_of(folder, inner)}
    return modules


def _jar_of(project: ElementTree.Element) -> str | None:
    """Return the file of the jar with all classes; ``None`` if there is none that runs JMH."""
    dependencies = project.findall("{*}dependencies/{*}dependency")
    if not any(
        _text(dependency, "artifactId") == "jmh-core" and _text(dependency, "scope") != "test"
        for dependency in dependencies
    ):
        return None
    plugins = {_text(plugin, "artifactId"): plugin for plugin in project.iterfind(".//{*}plugin")}
    version = _text(project, "version") or _text(project, "parent/{*}version")
    artifact = f"{_text(project, 'artifactId')}-{version}"
    name = _text(project, "build/{*}finalName") or artifact
    shade, assembly = plugins.get("maven-shade-plugin"), plugins.get("maven-assembly-plugin")
    if shade is not None:
        name = _text(shade, "configuration/{*}finalName", anywhere=True) or name
        if _text(shade, "configuration/{*}shadedArtifactAttached", anywhere=True) == "true":
            classifier = _text(shade, "configuration/{*}shadedClassifierName", anywhere=True)
            name += f"-{classifier or 'shaded'}"
    elif assembly is not None:
        name = _text(assembly, "configuration/{*}finalName", anywhere=True) or name
        if _text(assembly, "configuration/{*}appendAssemblyId", anywhere=True) != "false":
            name += "-jar-with-dependencies"
    else:
        return None
    return f"{_with_properties(name, project)}.jar"


def _text(element: ElementTree.Element, path: str, *, anywhere: bool = False) -> str:
    return (element.findtext(f"{'.//' if anywhere else ''}{{*}}{path}") or "").strip()


def _with_properties(text: str, project: ElementTree.Element) -> str:
    """Return a text with the values of its properties, such as ``${uberjar.name}``."""
    properties = {
        element.tag.rpartition("}")[2]: (element.text or "").strip()
        for element in project.iterfind("{*}properties/*")
        if isinstance(element.tag, str)
    }
    for name in ("artifactId", "version"):
        value = _text(project, name) or _text(project, f"parent/{{*}}{name}")
        properties[f"project.{name}"] = value
    for _ in range(len(properties)):
        replaced = re.sub(r"\$\{([^{}]+)\}", lambda match: properties.get(match[1], match[0]), text)
        if replaced == text:
            break
        text = replaced
    return text


def _find_gradle(folder: Path) -> FoundSuite | None:
    """Return the suite of Gradle's plugin me.champeau.jmh, which builds ``build/libs/*-jmh.jar``.

    The build copies the jar, because its name has the version of the project.
    """
    file = first_file_with(folder, r"build\.gradle(\.kts)?", _GRADLE_PLUGIN)
    starts = ("build.gradle", "build.gradle.kts", "settings.gradle", "settings.gradle.kts")
    if file is None or not any((folder / name).is_file() for name in starts):
        return None
    gradle = "./gradlew" if (folder / "gradlew").is_file() else "gradle"
    task = ":".join(["", *file.parent.parts, "jmhJar"])
    built = file.parent / "build"
    jar = built / "jmh.jar"
    # A daemon of Gradle would run on while Equipoise measures.
    build = (
        f"{gradle} -q --no-daemon {shlex.quote(task)} && "
        f"cp {shlex.quote(str(built / 'libs'))}/*-jmh.jar {shlex.quote(str(jar))}"
    )
    return FoundSuite(f"{file} has the plugin me.champeau.jmh", ("java", "-jar", str(jar)), build)


TOOL = BenchmarkTool(
    "jmh",
    measure=_measure,
    find=_find,
    tried_with="JMH 1.37, Maven 3.8",
    command=_COMMAND,
    build=_BUILD,
    listing=Listing(_list, short_run=_SHORT_RUN),
    counts=ToolCounts(
        "the profiler gc of JMH", (_BYTES,), lambda command: (*command, "-prof", "gc")
    ),
)
