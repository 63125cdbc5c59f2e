"""Lists the benchmarks of a suite of asv, or runs one of them in this process.

::

    python3 asv_program.py [OPTIONS OF asv run] --list
    python3 asv_program.py [OPTIONS OF asv run] --run NAME [--params VALUES] --results FILE

`equipoise gate --kind asv` starts this file with the Python of the user, which need not have
Equipoise, but must have the package asv_runner. asv itself installs asv_runner into its
environments, and calls the same functions of it.

The sources of the revision are importable, as if they were on PYTHONPATH. They are not if the user
sets PYTHONPATH, or if this Python belongs to an environment that the build made in the revision.
"""

from __future__ import annotations

import argparse
import ast
import contextlib
import itertools
import json
import math
import os
import re
import subprocess
import sys
import tempfile
import traceback
from importlib import import_module, metadata
from pathlib import Path
from typing import Any, Iterable, Iterator, Sequence  # noqa: UP035

REVISION_TREE_VARIABLE = "EQUIPOISE_GATE_TREE"
"""Environment variable with the working tree of the measured revision."""
USER_TREE_VARIABLE = "EQUIPOISE_GATE_INSTEAD_OF"
"""Environment variable with the user's own working tree; no module may be imported from there."""
RECORDS_VARIABLE = "EQUIPOISE_EXECUTED_FILES"
"""Environment variable of ``executed_files.py``, which records the files that a program runs."""
CONFIGURATION_NAMES = ("asv.conf.json", "asv.conf.jsonc")
SHORT_RUN = {"rounds": 1, "repeat": (1, 1000, 0.1)}
"""Attributes for benchmarks without them: at most 0.1 s of samples after the warm-up of 0.1 s. asv
takes up to 10 samples in 20 s, in each of two processes."""

_INSTALLATION_FOLDERS = ("site-packages", "dist-packages")
_MAX_MESSAGE_LENGTH = 500
_STRING = r'(?P<string>"(?:[^"\\\n]|\\.)*")'
_STRING_OR_COMMENT = re.compile(rf"{_STRING}|//[^\n]*|/\*.*?\*/", re.DOTALL)
_STRING_OR_LAST_COMMA = re.compile(rf"{_STRING}|,(?=\s*[\]}}])")
"""A string of JSON, or a comma after the last element of a list or an object."""


class SuiteError(Exception):
    """Reason why the suite, or one of its benchmarks, cannot run."""


def main(arguments: Sequence[str]) -> None:
    """List or run benchmarks. The results file of a run has a value, or an error."""
    options = _options(arguments)
    if options.list:
        try:
            _list(options)
        except SuiteError as error:
            raise SystemExit(str(error)) from None
        return
    try:
        results = _cache_results(options) if options.make_cache else _run(options)
    except SuiteError as error:
        results = {"error": str(error)}
    Path(options.results).write_text(json.dumps(results), encoding="utf-8")


def modules_from(tree: Path) -> Iterator[str]:
    """Yield the names of the imported modules of a working tree, except installed modules."""
    prefix = f"{tree.resolve()}{os.sep}"
    for name, file in _imported_files():
        # An environment inside the tree may contain installed packages, which are allowed.
        if not any(folder in file for folder in _INSTALLATION_FOLDERS):
            is_helper = name == "equipoise" or name.startswith("equipoise.helpers")
            is_helper = is_helper or os.path.samefile(file, __file__)
            if not is_helper and os.path.realpath(file).startswith(prefix):
                yield name


def _imported_files() -> Iterator[tuple[str, str]]:
    for name, module in list(sys.modules.items()):
        file = getattr(module, "__file__", None)
        if isinstance(file, str) and os.path.exists(file):
            yield name, file


def _options(arguments: Sequence[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="asv run", usage="%(prog)s [OPTIONS]", add_help=False)
    parser.add_argument("--config")
    parser.add_argument("-b", "--bench", action="append", default=[])
    parser.add_argument("-a", "--attribute", action="append", default=[])
    parser.add_argument("--list", action="store_true")
    parser.add_argument("--run")
    parser.add_argument("--params")
    parser.add_argument("--make-cache", action="store_true")
    parser.add_argument("--results")
    return parser.parse_args(arguments)


class _Suite:
    """The suite of a configuration, whose folder of benchmarks asv_runner can import."""

    def __init__(self, configuration: str | None) -> None:
        self.configuration = _configuration_file(configuration)
        settings = _read_configuration(self.configuration)
        folder = settings.get("benchmark_dir", "benchmarks")
        self.folder = os.path.join(os.path.dirname(self.configuration), str(folder))
        if not os.path.isdir(self.folder):
            raise SuiteError(f"{self.configuration}: there is no folder {self.folder}")
        self.folder = os.path.realpath(self.folder)
        self.project = str(settings.get("project", ""))
        self.tree = os.environ.get(REVISION_TREE_VARIABLE)
        _import_sources(self.tree or os.getcwd(), str(settings.get("repo_subdir", "")))
        try:
            self.discovery: Any = import_module("asv_runner.discovery")
            self.runner_version = metadata.version("asv_runner")
        except ImportError as error:
            raise SuiteError(
                f"{sys.executable} cannot import {error.name}: install asv there, or name the "
                "Python of the suite after --"
            ) from None

    def describe(self, error: BaseException, place: str) -> SuiteError:
        """Return an error of the suite, of one line."""
        return SuiteError(f"asv_runner {self.runner_version}: {place}: {_described(error)}")

    def check_modules(self) -> None:
        """Raise `SuiteError` if a module is not of the revision, but should be."""
        user_tree, revision_tree = os.environ.get(USER_TREE_VARIABLE), self.tree
        if not user_tree or not revision_tree:
            return
        foreign = sorted(modules_from(Path(user_tree)))
        if not foreign:
            prefix = f"{os.path.realpath(revision_tree)}{os.sep}"
            names = _modules_of_project(self.project)
            foreign = sorted(
                name
                for name, file in _imported_files()
                if name in names and not os.path.realpath(file).startswith(prefix)
            )
        if foreign:
            file = sys.modules[foreign[0]].__file__
            raise SuiteError(
                f"{foreign[0]} was imported from {file}, which is neither revision: let --build "
                "install the revision in its own environment, or set PYTHONPATH to its sources"
            )


def _configuration_file(name: str | None) -> str:
    names = CONFIGURATION_NAMES if name is None else (name,)
    for candidate in names:
        if os.path.isfile(candidate):
            return os.path.abspath(candidate)
    hint = ": add --config FILE to the command" if name is None else ""
    raise SuiteError(f"there is no {names[0]} in {os.getcwd()}{hint}")


def _read_configuration(file: str) -> dict[str, Any]:
    try:
        text = Path(file).read_text(encoding="utf-8")
        for pattern in (_STRING_OR_COMMENT, _STRING_OR_LAST_COMMA):
            text = pattern.sub(lambda match: match["string"] or "", text)
        settings = json.loads(text)
    except (OSError, ValueError, RecursionError) as error:
        raise SuiteError(f"{file} cannot be read: {_described(error)}") from None
    if not isinstance(settings, dict):
        raise SuiteError(f"{file} cannot be read: it is not an object")
    return settings


def _import_sources(tree: str, subfolder: str) -> None:
    """Make the sources of a revision importable, in this process and its children."""
    own_paths = os.environ.get("PYTHONPATH")
    in_tree = os.path.realpath(sys.prefix).startswith(f"{os.path.realpath(tree)}{os.sep}")
    if own_paths:
        # Benchmarks run in another folder, so no path may be relative.
        paths = [os.path.abspath(path) for path in own_paths.split(os.pathsep)]
    elif in_tree:
        return
    else:
        root = os.path.abspath(os.path.join(tree, subfolder))
        # The folder src may also have sources in C, of a package next to it.
        paths = [path for path in (os.path.join(root, "src"), root) if os.path.isdir(path)]
    os.environ["PYTHONPATH"] = os.pathsep.join(paths)
    sys.path[:0] = [path for path in paths if path not in sys.path]


def _modules_of_project(project: str) -> set[str]:
    """Return the names that the top-level modules of a project have, or are likely to have."""
    names = {re.sub(r"[-_. ]+", "_", project), re.sub(r"[-_. ]+", "_", project).lower()}
    try:
        files = metadata.files(project) or []
    except (metadata.PackageNotFoundError, ValueError):
        return names
    installed = {file.parts[0] for file in files if file.suffix in {".py", ".so"}}
    return names | {name.partition(".")[0] for name in installed}


def _described(error: BaseException) -> str:
    text = " ".join("".join(traceback.format_exception_only(type(error), error)).split())
    return text if len(text) <= _MAX_MESSAGE_LENGTH else f"{text[:_MAX_MESSAGE_LENGTH]}…"


def _list(options: argparse.Namespace) -> None:
    """Write the chosen benchmarks with their types and combinations of parameters, as JSON."""
    suite, patterns = _Suite(options.config), _patterns(options.bench)
    benchmarks: dict[str, Any] = {}
    with _standard_output_elsewhere() as output:
        try:
            for benchmark in _discovered(suite):
                name = _printable(benchmark.name)
                if name in benchmarks and benchmarks[name].func != benchmark.func:
                    raise SuiteError(f"{suite.folder}: two benchmarks have the name {name}")
                benchmarks[name] = benchmark
        except SuiteError:
            raise
        except BaseException as error:
            raise suite.describe(error, suite.folder) from None
        suite.check_modules()
        listed = []
        for name, benchmark in benchmarks.items():
            combinations = [
                params
                for params in _unskipped_params(benchmark)
                if not patterns
                or any(pattern.search(full_name(name, params)) for pattern in patterns)
            ]
            if combinations:
                listed.append({"name": name, "type": benchmark.type, "params": combinations})
        json.dump({"benchmarks": listed, "is_chosen": bool(patterns)}, output)


def _discovered(suite: _Suite) -> Iterable[Any]:
    import_module("asv_runner._aux").update_sys_path(suite.folder)
    benchmarks: Iterable[Any] = suite.discovery.disc_benchmarks(suite.folder)
    return benchmarks


def _patterns(expressions: Sequence[str]) -> list[re.Pattern[str]]:
    patterns = []
    for expression in expressions:
        try:
            patterns.append(re.compile(expression))
        except re.error as error:
            raise SuiteError(f"--bench {expression} is not a regular expression: {error}") from None
    return patterns


@contextlib.contextmanager
def _standard_output_elsewhere() -> Iterator[Any]:
    """Yield the standard output; everything that the suite prints goes to standard error."""
    with os.fdopen(os.dup(1), "w", encoding="utf-8") as output:
        os.dup2(2, 1)
        yield output


def full_name(name: str, params: str | None) -> str:
    """Return the name of a benchmark with a combination of parameters, as asv prints it."""
    return name if params is None else f"{name}({params})"


def _params_of(benchmark: Any) -> list[str | None]:
    """Return the combinations of parameters in the order of their indices, as asv prints them."""
    if not benchmark.params:
        return [None]
    return [_printable(", ".join(values)) for values in itertools.product(*benchmark.params)]


def _unskipped_params(benchmark: Any) -> list[str | None]:
    skipped = getattr(benchmark, "_skip_tuples", ())
    values = itertools.product(*getattr(benchmark, "_params", ()))
    return [
        params
        for params, combination in zip(_params_of(benchmark), values)  # noqa: B905
        if combination not in skipped
    ]


def _printable(text: str) -> str:
    return "".join(
        character if character.isprintable() else ascii(character)[1:-1] for character in text
    )


def _benchmark(suite: _Suite, options: argparse.Namespace) -> tuple[Any, str]:
    """Return a benchmark, and its identifier for asv_runner, with the index of the parameters."""
    try:
        benchmark = suite.discovery.get_benchmark_from_name(suite.folder, options.run)
    except BaseException as error:
        raise suite.describe(error, options.run) from None
    if options.params is None:
        return benchmark, options.run
    try:
        index = _params_of(benchmark).index(options.params)
    except ValueError:
        raise SuiteError(f"{options.run} has no parameters {options.params}") from None
    return benchmark, f"{options.run}-{index}"


def _run(options: argparse.Namespace) -> dict[str, Any]:
    suite = _Suite(options.config)
    benchmark, identifier = _benchmark(suite, options)
    name = full_name(options.run, options.params)
    sources = benchmark._attr_sources
    attributes = {
        attribute: value
        for attribute, value in SHORT_RUN.items()
        if not any(hasattr(source, attribute) for source in sources)
    }
    attributes.update(_attributes(options.attribute))
    results_file = os.path.abspath(options.results)
    options.results = results_file
    with tempfile.TemporaryDirectory() as folder:
        # A benchmark may read the files that its setup_cache wrote to the current folder.
        os.chdir(folder)
        if benchmark.setup_cache_key is not None:
            _make_cache(suite, options)
        arguments = (suite.folder, identifier, json.dumps(attributes), "None", results_file)
        try:
            import_module("asv_runner.run")._run(arguments)
            value = json.loads(Path(results_file).read_text(encoding="utf-8"))
        except BaseException as error:
            raise suite.describe(error, name) from None
        finally:
            os.chdir(os.path.dirname(results_file))
    suite.check_modules()
    return {"type": benchmark.type, **_value(value, suite, name)}


def _value(value: Any, suite: _Suite, name: str) -> dict[str, float]:
    if isinstance(value, dict) and value.get("samples"):
        return {"value": sum(value["samples"]) / len(value["samples"])}
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        problem = f"returned {str(value)[:_MAX_MESSAGE_LENGTH]}, which is not a number"
    elif math.isnan(value):
        problem = "skipped itself"
    elif math.isinf(value):
        problem = "returned an infinite value"
    else:
        return {"value": value}
    raise SuiteError(f"asv_runner {suite.runner_version}: {name} {problem}")


def _attributes(assignments: Sequence[str]) -> dict[str, Any]:
    attributes = {}
    for assignment in assignments:
        name, separator, text = assignment.partition("=")
        if not separator:
            raise SuiteError(f"--attribute {assignment} is not NAME=VALUE")
        try:
            attributes[name] = ast.literal_eval(text)
        except (ValueError, SyntaxError):
            attributes[name] = text
    return attributes


def _make_cache(suite: _Suite, options: argparse.Namespace) -> None:
    """Run setup_cache in another process, because its memory is not the benchmark's."""
    command = [sys.executable, *_recorder(), __file__, f"--config={suite.configuration}"]
    command += [f"--run={options.run}", "--make-cache", f"--results={options.results}"]
    subprocess.run(command, check=False)
    try:
        results = json.loads(Path(options.results).read_text(encoding="utf-8"))
    except (OSError, ValueError):
        results = {"error": f"setup_cache of {options.run} failed"}
    if "error" in results:
        raise SuiteError(results["error"])


def _recorder() -> list[str]:
    """Return the program that records another program, if the files of this one are recorded."""
    if not os.environ.get(RECORDS_VARIABLE):
        return []
    return [os.path.join(os.path.dirname(__file__), "executed_files.py")]


def _cache_results(options: argparse.Namespace) -> dict[str, Any]:
    suite = _Suite(options.config)
    try:
        import_module("asv_runner.setup_cache")._setup_cache((suite.folder, options.run, "{}"))
    except BaseException as error:
        raise suite.describe(error, f"setup_cache of {options.run}") from None
    return {}


if __name__ == "__main__":
    if sys.path and os.path.abspath(sys.path[0]) == os.path.dirname(os.path.abspath(__file__)):
        # The other files in this folder must not replace modules of the suite.
        del sys.path[0]
    main(sys.argv[1:])
