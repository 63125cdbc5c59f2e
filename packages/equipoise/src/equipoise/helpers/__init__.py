"""Programs and functions with which a workload reports its own metrics.

- ``equipoise_metrics``: functions with which a Python program reports; may be copied.
- ``harness``: timing a Python callable or a command; ``pytest_plugin``: a fixture for pytest.
- ``benchmark_tool``: running a benchmark tool (criterion and others) and reporting its results.
  ``criterion_runner``: running the programs of criterion briefly.
"""
