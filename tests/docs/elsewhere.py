"""The lines of examples that are not run with the documentation: why, and what runs them."""

from __future__ import annotations

from typing import NamedTuple


class Elsewhere(NamedTuple):
    """Why a line is left out here."""

    because: str
    runs_in: str
    """A test, ``file::name``, or ``make TARGET``."""


SERVERS = Elsewhere(
    "each trial is a life of a database server",
    "packages/studies/tests/cli/test_database_servers.py::test_mariadb_lives_for_a_trial_and_is_gone",
)
ASV = Elsewhere(
    "pip asks PyPI",
    "packages/equipoise/tests/suites/adapters/test_asv.py::test_a_gate_compares_the_unchanged_example",
)
GOOGLE_BENCHMARK = Elsewhere(
    "compiles in two revisions",
    "packages/equipoise/tests/kinds/gate/test_tools.py"
    "::test_each_benchmark_of_google_benchmark_is_compared_in_its_own_processes",
)
BENCH = Elsewhere("minutes to an hour", "make bench")
CLUSTER = "asks a cluster of the network"
MATCHING = Elsewhere(
    "installs from a registry",
    "tests/packaging/test_wheel.py"
    "::test_matching_alone_matches_and_loads_nothing_of_the_laboratory",
)
STUDIES = Elsewhere(
    "installs from a registry",
    "tests/packaging/test_wheel.py"
    "::test_with_the_studies_primitives_are_measured_and_workloads_compared",
)
VERIFY = Elsewhere(
    "more blocks than run here decide its exit status",
    "packages/equipoise/tests/kinds/verify/test_command.py::test_a_true_speed_up_is_certified",
)
CERTIFICATE = Elsewhere(
    "more blocks than run here decide its exit status",
    "packages/equipoise/tests/kinds/verify/test_certificate.py"
    "::test_it_replicates_in_the_same_repository_and_in_a_clone",
)
DUET = Elsewhere(
    "its pilot may refuse programs of a millisecond on a busy host",
    "packages/equipoise/tests/kinds/gate/test_duet.py"
    "::test_both_revisions_of_each_benchmark_run_at_once",
)
ELSEWHERE = {
    "equipoise verify --baseline main --build make -- ./bench --size 1000": VERIFY,
    "equipoise verify --baseline main --build make --quiet --json answer.json"
    " -- ./bench --size 1000": VERIFY,
    "equipoise verify --baseline v1.4 --build make --certificate speed-up.db"
    " -- ./bench --size 1000": CERTIFICATE,
    "equipoise verify --replay speed-up.db": CERTIFICATE,
    "pip install 'equipoise-matching[charts,datasets]'": MATCHING,
    "pip install 'equipoise[matching,datasets]'": MATCHING,
    "pip install equipoise-studies": STUDIES,
    "equipoise run database --quick": SERVERS,
    "equipoise run database --factor server=mariadb --factor setting=glibc,tcp,apart": SERVERS,
    "equipoise run database --factor server=mariadb --factor setting=glibc,tcp,apart"
    " --factor threads=1,4": SERVERS,
    "equipoise observe trials.csv --treatment host_kernel=6.1.0:5.10.0 --outcome ratio_to_baseline"
    " --exact host_cpu_model --covariates host_cpus --cluster host --missing drop"
    " --one-unit": Elsewhere(
        "reads the trials of 24 hosts",
        "packages/equipoise/tests/kinds/fleet/test_results.py"
        "::test_observe_reads_the_export_and_compares_hosts_with_one_kernel_and_the_other",
    ),
    "equipoise compare 'sleep 0.1' 'sleep 2' --timeout 0.5 --budget 10": Elsewhere(
        "takes more blocks than run here",
        "packages/equipoise/tests/campaign/test_conduct.py::test_timeouts_are_kept_as_slowest_to_the_verdict",
    ),
    "equipoise compare ./old ./new --duet": DUET,
    "equipoise gate --baseline main --build make --duet -- ./bench": DUET,
    "equipoise doctor --certify": Elsewhere(
        "two minutes of campaigns, whose number no option changes",
        "packages/equipoise/tests/analysis/test_certificate.py::test_a_quiet_host_finds_the_injected_effects_and_few_others",
    ),
    "equipoise comment --code-quality gl-code-quality-report.json gate.json": Elsewhere(
        "reads the result of a gate of a job",
        "packages/equipoise/tests/kinds/gate/test_annotations.py"
        "::test_each_forge_receives_the_same_pages_as_before",
    ),
    "equipoise comment --github gate.json": Elsewhere(
        "writes to GitHub",
        "packages/equipoise/tests/kinds/gate/test_comment.py::test_the_first_gate_writes_a_comment_on_github_and_the_next_one_replaces_it",
    ),
    "equipoise gate --join slice-*.db": Elsewhere(
        "reads the files of other jobs",
        "packages/equipoise/tests/kinds/gate/test_join.py"
        "::test_a_slice_succeeds_also_if_its_own_gate_fails",
    ),
    "equipoise gate --baseline main --kind cargo": Elsewhere(
        "cargo asks crates.io",
        "packages/equipoise/tests/kinds/gate/test_tools.py::test_a_warning_names_a_cargo_benchmark_that_only_one_revision_has",
    ),
    "equipoise gate --baseline main --build make --functions ./libbenchmarks.so": Elsewhere(
        "compiles a library in two revisions",
        "packages/equipoise/tests/kinds/gate/test_functions_examples.py"
        "::test_the_slower_function_of_an_example_is_found",
    ),
    "equipoise gate --baseline main --kind google-benchmark"
    " --build 'make bench' -- ./bench": GOOGLE_BENCHMARK,
    "equipoise gate --baseline main --kind pytest"
    " --build 'python3 -m venv .venv; .venv/bin/pip install -q pytest pytest-benchmark .'"
    " -- .venv/bin/pytest -q": Elsewhere(
        "pip asks PyPI",
        "packages/equipoise/tests/kinds/gate/test_tools.py::test_a_project_s_pytest_benchmarks_go_through_a_gate_as_they_are",
    ),
    "equipoise gate --baseline main --kind asv"
    " --build 'python3 -m venv .venv; .venv/bin/pip install -q asv_runner .'"
    " -- .venv/bin/python --bench 'time_.*parse'": ASV,
    "equipoise compare ./sort-old ./sort-new --cluster tcp://10.0.0.1:8786": Elsewhere(
        CLUSTER,
        "packages/equipoise/tests/kinds/fleet/test_command.py::test_compare_on_a_cluster_shows_what_its_hosts_measured",
    ),
    'gen_match(treat, X, executor=Client("tcp://10.0.0.5:8786"), seed=1)': Elsewhere(
        CLUSTER,
        "packages/equipoise/tests/cli/test_genmatch.py::test_a_scheduler_evaluates_and_changes_nothing",
    ),
    ". .venv/bin/activate": Elsewhere("made by make build, in which these tests run", "make build"),
    "python -m benchmarks.genoud.run --settings 5000x30": BENCH,
    "python -m benchmarks.genoud.beside_r": BENCH,
    "python -m benchmarks.scale": BENCH,
    "python -m benchmarks.scale --part messages": BENCH,
    "python benchmarks/workloads/genmatch2006.py 445 890": BENCH,
}
