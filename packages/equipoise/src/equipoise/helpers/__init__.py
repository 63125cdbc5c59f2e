"""Programs and functions with which a workload reports its own metrics.

equipoise_metrics  reports the metrics of a Python program; the file may be copied
harness            times a Python callable or a command
pytest_plugin      a fixture for pytest
pytest_counting    counts the allocations of benchmarks of pytest
allocation_counts  reads the counts of the preloaded recorder
asv_program        lists or runs benchmarks of asv
executed_files     records which files a Python program runs and reads
cargo_runner       runs the benchmark programs of cargo, criterion briefly

``equipoise_tinybench.mjs``, for Node, runs tinybench briefly and writes its times.
"""
