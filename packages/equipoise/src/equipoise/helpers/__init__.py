"""Programs and files with which a workload reports its own metrics.

- ``equipoise_metrics``: the functions that a Python program calls, or copies, to report.
- ``harness``: timing a Python callable or a command; ``pytest_plugin``: a fixture for pytest.
- ``benchmark_tool``: running a benchmark tool (criterion and others) and reporting its results.
  ``criterion_runner``: running the programs of criterion briefly.
"""
