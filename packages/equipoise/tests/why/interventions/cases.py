"""Cases that interventions are chosen for, and altered conditions that really run."""

from __future__ import annotations

import shutil
from collections.abc import Mapping
from pathlib import Path

import msgspec.structs

from equipoise.design.site import Site
from equipoise.measure.environment import CovariateReader, Host
from equipoise.measure.installation import host_site, launcher_program
from equipoise.measure.launcher import Launcher
from equipoise.measure.trials import TrialReport, TrialRunner
from equipoise.model.plan import Condition, Measure, Output
from equipoise.model.record import Draw
from equipoise.model.why import Explanation
from equipoise.why.interventions.catalogue import relevant_interventions
from equipoise.why.interventions.intervention import Case, Intervention
from packages.equipoise.tests.plans import plan_of

BASELINE = Condition("a", ("/bin/a", "one"))
CANDIDATE = Condition("b", ("/bin/b", "two", "three"))
DRAW = Draw("measured", 1, (0,), 0)


def site(
    cpus: tuple[int, ...] = (0, 1),
    environment: Mapping[str, str] | None = None,
    instructions: frozenset[str] = frozenset(),
) -> Site:
    """A host on which every library is in /lib."""
    return Site(Path("/own"), lambda name: f"/lib/{name}", instructions, environment or {}, cpus)


def case_of(
    baseline: Condition = BASELINE, candidate: Condition = CANDIDATE, at: Site | None = None
) -> Case:
    """A case of that pair."""
    return Case((baseline, candidate), at or site())


def intervention_named(name: str, case: Case) -> Intervention:
    """The intervention of that name for a case."""
    return next(
        intervention for intervention in relevant_interventions(case) if intervention.name == name
    )


def cause(name: str, seconds: float = 1.0, **evidence: object) -> Explanation:
    """A cause that was found."""
    return Explanation(
        cause=name,
        kind="function",
        evidence=dict(evidence),
        status="open",
        share_of_gap=0.5,
        share_ci=(None, None),
        summary=name,
        seconds=seconds,
    )


def shell(script: str) -> Condition:
    """A shell that runs a script; it is linked dynamically, as most programs are."""
    return Condition("shell", (shutil.which("sh") or "/bin/sh", "-c", script))


def case_here(condition: Condition) -> Case:
    """The condition beside itself, on this host."""
    return Case((condition, msgspec.structs.replace(condition, name="other")), host_site())


def ran(condition: Condition, folder: Path, output: Output | None = None) -> TrialReport:
    """One trial of a condition in a folder, which must end well."""
    environment = {"PATH": "/usr/bin:/bin"}
    measure = Measure(str(folder), output=output or Output("file", "printed"), timeout_s=60.0)
    plan = msgspec.structs.replace(plan_of(measure=measure), conditions=(condition,))
    scratch = folder / "scratch"
    scratch.mkdir(exist_ok=True)
    with Launcher(launcher_program()) as launcher:
        covariates = CovariateReader(Host(folder / "nowhere"))
        runner = TrialRunner(plan, launcher, scratch, environment, covariates)
        done = runner.trials_at(DRAW, 0)[0]()
    assert (done.trial.failure, done.trial.error_tail) == (None, "")
    return done


def output_of(condition: Condition, folder: Path) -> str:
    """Return the output of one trial of a condition."""
    ran(condition, folder)
    return (folder / "printed").read_text()
