import pytest


@pytest.mark.benchmark
def test_sum_performance():
    data = range(2000)
    output = sum(i**2 for i in data)
    assert output > 0


def test_precise_performance(benchmark):
    data = range(2000)
    # Only the function call is measured
    result = benchmark(lambda: sum(i**2 for i in data))
    assert result > 0
