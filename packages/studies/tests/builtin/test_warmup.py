"""The built-in study `warmup`: kernels that agree, and classes of what they report."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from msgspec.structs import replace

import equipoise
from equipoise.analysis.result import analyse_campaign
from equipoise.figures.gallery import iteration_figures
from equipoise.model.result import ResultDocument
from equipoise.stats.arrays import FloatArray
from equipoise.stats.warm_up import classify_trial
from equipoise.studies.catalogue import analysis_of
from equipoise_studies.builtin.warmup.analysis import findings
from equipoise_studies.study_data import StudyData
from packages.equipoise.tests.iterated import Series, record_of, short, steady

FOLDER = Path(findings.__code__.co_filename).parent
HELPERS = Path(equipoise.__file__).parent / "helpers"
KERNELS = ("nbody", "fannkuch", "spectral")


def run_kernel(folder: Path, *command: str) -> tuple[float, FloatArray]:
    """The answer of a kernel and its iterations."""
    metrics_file = folder / "metrics"
    metrics_file.unlink(missing_ok=True)
    environment = {**os.environ, "EQUIPOISE_METRICS": str(metrics_file)}
    subprocess.run(command, env=environment, check=True, timeout=600)
    lines = [json.loads(line) for line in metrics_file.read_text().splitlines()]
    series = [line["value"] for line in lines if "iteration" in line]
    return next(line["value"] for line in lines if line["metric"] == "answer"), np.array(series)


def fastest_iterations(folder: Path, *command: str) -> FloatArray:
    """The shortest time of each iteration in five runs, because other work may disturb a run."""
    runs = [run_kernel(folder, *command)[1] for _ in range(5)]
    return np.asarray(np.min(runs, axis=0))


@pytest.fixture(scope="module")
def commands(tmp_path_factory: pytest.TempPathFactory) -> dict[str, tuple[str, ...]]:
    """Return the commands of the installed runtimes that run the kernels."""
    build = tmp_path_factory.mktemp("kernels")
    by_runtime: dict[str, tuple[str, ...]] = {
        "cpython": (sys.executable, str(FOLDER / "kernels.py"))
    }
    if shutil.which("cc"):
        program = str(build / "kernels")
        source = (f"-I{HELPERS}", "-o", program, str(FOLDER / "kernels.c"), "-lm")
        subprocess.run(["cc", "-O2", *source], check=True)
        by_runtime["compiled"] = (program,)
    if shutil.which("javac"):
        sources = (str(FOLDER / "Kernels.java"), str(HELPERS / "EquipoiseMetrics.java"))
        subprocess.run(["javac", "-d", str(build), *sources], check=True)
        by_runtime["jvm"] = ("java", "-cp", str(build), "Kernels")
    if shutil.which("node"):
        by_runtime["node"] = ("node", str(FOLDER / "kernels.js"))
    return by_runtime


@pytest.mark.parametrize("kernel", KERNELS)
def test_every_language_gives_the_same_answer(
    commands: dict[str, tuple[str, ...]], tmp_path: Path, kernel: str
) -> None:
    answers = {
        runtime: run_kernel(tmp_path, *command, kernel, "1", "1")[0]
        for runtime, command in commands.items()
    }
    assert list(answers.values()) == pytest.approx([answers["cpython"]] * len(answers), rel=1e-12)
    if kernel == "fannkuch":
        # Anderson and Rettig (1994): 228 and 16 flips for seven.
        assert answers["cpython"] == 228016.0
    if kernel == "spectral":
        i, j = np.indices((30, 30))
        matrix = 1.0 / ((i + j) * (i + j + 1) // 2 + i + 1)
        assert answers["cpython"] == pytest.approx(float(np.linalg.norm(matrix, 2)), rel=1e-9)


@pytest.mark.live("javac", "java", package="default-jdk-headless")
@pytest.mark.live("cc", package="gcc")
def test_jvm_warms_up_and_compiled_programs_do_not(
    commands: dict[str, tuple[str, ...]], tmp_path: Path
) -> None:
    # It interprets the first 55 iterations, and waits for what it compiles: both are the same on
    # every machine, however busy.
    java, *words = commands["jvm"]
    compiles = ("-Xbatch", "-XX:-TieredCompilation", "-XX:CompileThresholdScaling=100")
    jvm = fastest_iterations(tmp_path, java, *compiles, *words, "spectral", "150", "1")
    shape = classify_trial(jvm)
    assert shape is not None and shape.kind in ("warm-up", "no steady state")
    assert jvm[0] > 3 * np.median(jvm[-40:])
    # The lowest of the first few: one disturbed iteration is not a warm-up.
    compiled = fastest_iterations(tmp_path, *commands["compiled"], "spectral", "150", "20")
    assert compiled[:5].min() < 2 * np.median(compiled[-40:])


def planted(*conditions: Series) -> ResultDocument:
    """The JVM warms up over 30 iterations; what is compiled is flat."""
    usual = (steady(0.01, warm_up=30, count=100), steady(0.01, warm_up=0, count=100))
    names = ("jvm nbody", "compiled nbody")
    document = analyse_campaign(
        record_of(*(conditions or usual), names=names, metric="iteration_s", blocks=10)
    )
    return replace(
        document,
        conditions=tuple(
            replace(
                condition,
                levels=dict(zip(("runtime", "kernel"), condition.name.split(), strict=True)),
            )
            for condition in document.conditions
        ),
    )


def test_each_runtime_is_classified_by_its_trials() -> None:
    (table,) = findings(StudyData(planted())).tables
    assert (
        findings(StudyData(planted())).answer == "2 pairs of runtime and kernel: 1 warm-up, 1 flat."
    )
    classes = {row[0]: row[2] for row in table.rows}
    assert classes == {"jvm": "warm-up", "compiled": "flat"}
    jvm = next(row for row in table.rows if row[0] == "jvm")
    assert int(jvm[3]) == pytest.approx(31, abs=3)
    assert float(jvm[6]) == pytest.approx(3.0, rel=0.1)


def test_each_condition_has_its_series_drawn() -> None:
    document = planted()
    own = analysis_of("warmup")
    assert own is not None
    assert own.figures(document) == ()
    assert [figure.name for figure in iteration_figures(document)] == [
        "iterations_jvm_nbody_iteration_s",
        "iterations_compiled_nbody_iteration_s",
    ]


def test_trials_too_short_to_classify_have_no_row() -> None:
    result = findings(StudyData(planted(short, short)))
    assert result.tables == () and result.paragraphs == () and not result.answer
