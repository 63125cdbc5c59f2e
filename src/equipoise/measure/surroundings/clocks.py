"""The clock that trials are timed by."""

from __future__ import annotations

import time

from equipoise.measure.surroundings.facts import Facts

FOLDER = "/sys/devices/system/clocksource/clocksource0"

FACTS: Facts = {
    "clock_source": lambda host: host.text(f"{FOLDER}/current_clocksource"),
    "clock_sources_available": lambda host: host.text(f"{FOLDER}/available_clocksource").split(),
    "clock_resolution_s": lambda _: time.clock_getres(time.CLOCK_MONOTONIC),
}
