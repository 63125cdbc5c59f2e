"""Covariates describe the host during a trial; unreadable ones are null with a reason."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from equipoise.measure.environment import CovariateReader, Host
from packages.equipoise.tests.measure.planted import CPU, plant, quiet_host


@pytest.fixture
def host(tmp_path: Path) -> Host:
    return quiet_host(tmp_path)


@pytest.fixture
def reader(host: Host) -> Iterator[CovariateReader]:
    # Planted files are on a disk; the time to read them does not matter here.
    seconds = iter(range(100))
    with CovariateReader(host, clock=lambda: 0.0, now=lambda: float(next(seconds))) as opened:
        yield opened


def test_events_during_the_trial_are_differences_of_readings(
    host: Host, reader: CovariateReader
) -> None:
    reader.read_before()
    plant(
        host.root,
        {
            "proc/stat": "cpu  1100 10 520 90000 10 3 7 25 0 0\n",
            "proc/pressure/cpu": "some avg10=1.00 avg60=0.00 avg300=0.00 total=1250000\nfull\n",
            "proc/loadavg": "9.99 0.10 0.20 1/100 4243\n",
            "sys/class/thermal/thermal_zone1/temp": "60000\n",
        },
    )
    tick_s = 1.0 / os.sysconf("SC_CLK_TCK")
    assert reader.read_after(cpu=1, run_delay_s=0.002) == pytest.approx(
        {
            "load_1_minute": 0.05,
            "pressure_cpu_s": 0.25,
            "pressure_cpu_before": 0.0,
            "pressure_memory_s": 0.0,
            "pressure_memory_before": 0.0,
            "pressure_io_s": 0.0,
            "pressure_io_before": 0.0,
            "steal_s": 25 * tick_s,
            "busy_s": (100 + 10 + 20 + 3 + 2) * tick_s,
            "steal_before": None,
            "frequency_hz": 3.1e9,
            "frequency_before_hz": 2.4e9,
            "temperature_c": 41.5,
            "run_delay_s": 0.002,
            "cpu": 1,
        }
    )
    assert reader.reasons == {
        "steal_before": "the previous trial was too short for the clock of this source"
    }


def test_covariates_read_before_a_trial_cover_the_time_since_the_previous_one(
    host: Host, reader: CovariateReader
) -> None:
    reader.read_before()
    reader.read_after(cpu=1)
    plant(
        host.root,
        {
            "proc/stat": "cpu  1100 0 500 90080 10 0 5 20 0 0\n",
            "proc/pressure/cpu": "some total=1250000\nfull total=0\n",
            "proc/pressure/io": "some total=9000500\nfull total=0\n",
        },
    )
    # One second after the reading before the first trial.
    reader.read_before()
    values = reader.read_after(cpu=0)
    assert values["pressure_cpu_before"] == pytest.approx(0.25)
    assert values["pressure_memory_before"] == 0.0
    # The kernel updates its total at intervals; a fraction is at most 1 all the same.
    assert values["pressure_io_before"] == 1.0
    assert values["steal_before"] == pytest.approx(20 / 200)
    # The previous trial ran on CPU 1.
    assert values["frequency_before_hz"] == pytest.approx(3.1e9)
    # Events after the reading do not count.
    plant(host.root, {"proc/pressure/memory": "some total=500000\nfull total=0\n"})
    assert reader.read_after(cpu=0)["pressure_memory_before"] == 0.0


def test_each_trial_starts_from_zero(host: Host, reader: CovariateReader) -> None:
    reader.read_before()
    plant(host.root, {"proc/pressure/io": "some total=1000500\nfull total=0\n"})
    assert reader.read_after(cpu=0)["pressure_io_s"] == pytest.approx(1.0)
    reader.read_before()
    assert reader.read_after(cpu=0)["pressure_io_s"] == 0.0


def test_missing_covariates_are_null_with_a_reason(tmp_path: Path) -> None:
    plant(tmp_path, {"proc/loadavg": "0.50 0.1 0.1 1/1 1\n"})
    with CovariateReader(Host(tmp_path), clock=lambda: 0.0) as reader:
        reader.read_before()
        values = reader.read_after()
    assert values.pop("load_1_minute") == 0.5
    assert set(values.values()) == {None}
    assert set(reader.reasons) == set(values)
    assert reader.reasons["pressure_cpu_s"].startswith("/proc/pressure/cpu: ")


def test_a_source_that_becomes_nonsense_is_null_and_the_others_stay(
    host: Host, reader: CovariateReader
) -> None:
    plant(host.root, {"proc/loadavg": "high\n"})
    reader.read_before()
    values = reader.read_after(cpu=0)
    assert values["load_1_minute"] is None
    assert "documented format" in reader.reasons["load_1_minute"]
    assert values["steal_s"] == 0.0


def test_the_frequency_of_an_unknown_cpu_is_not_guessed(reader: CovariateReader) -> None:
    reader.read_before()
    values = reader.read_after()
    assert values["frequency_hz"] is None
    assert values["cpu"] is None
    assert set(reader.reasons) == {"frequency_hz", "cpu", "run_delay_s", "steal_before"}


def test_without_a_zone_of_the_processor_its_monitor_is_read(tmp_path: Path) -> None:
    host = quiet_host(
        tmp_path,
        {
            "sys/class/thermal/thermal_zone1/type": "iwlwifi\n",
            "sys/class/hwmon/hwmon0/name": "nvme\n",
            "sys/class/hwmon/hwmon0/temp1_input": "80000\n",
            "sys/class/hwmon/hwmon1/name": "k10temp\n",
            "sys/class/hwmon/hwmon1/temp1_input": "55250\n",
        },
    )
    with CovariateReader(host, clock=lambda: 0.0) as reader:
        reader.read_before()
        assert reader.read_after(cpu=0)["temperature_c"] == 55.25


def test_a_source_that_is_slow_here_is_left_out_and_reported(host: Host) -> None:
    seconds = iter(range(1000))
    with CovariateReader(host, clock=lambda: float(next(seconds)), max_s=0.5) as reader:
        reader.read_before()
        assert reader.read_after(cpu=0)["pressure_cpu_s"] is None
    assert reader.reasons["pressure_cpu_s"] == (
        "reading it takes 1e+03 ms here: too long for each trial"
    )


def test_no_file_stays_open(host: Host) -> None:
    before = os.listdir("/proc/self/fd")
    with CovariateReader(host, clock=lambda: 0.0) as reader:
        reader.read_before()
        reader.read_after(cpu=1)
        assert len(os.listdir("/proc/self/fd")) > len(before)
    assert len(os.listdir("/proc/self/fd")) == len(before)


def test_a_cpu_without_a_frequency_is_null(host: Host, reader: CovariateReader) -> None:
    (host.root / CPU / "cpu1/cpufreq/scaling_cur_freq").unlink()
    reader.read_before()
    assert reader.read_after(cpu=1)["frequency_hz"] is None
    assert reader.read_after(cpu=0)["frequency_hz"] == 2.4e9


def test_this_host_gives_every_covariate_or_its_reason() -> None:
    with CovariateReader() as reader:
        reader.read_before()
        values = reader.read_after(cpu=0)
        for name, value in values.items():
            assert value is not None or reader.reasons[name]
