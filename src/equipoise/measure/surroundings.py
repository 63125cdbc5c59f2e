"""What a campaign ran on, and what can be read cheaply beside each trial."""

from __future__ import annotations

import os
import platform
from datetime import datetime
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

PROC = Path("/proc")


def snapshot(proc: Path = PROC) -> dict[str, Any]:
    """The environment of a sitting; what could not be read is ``None``."""
    return {
        "equipoise": _own_version(),
        "python": platform.python_version(),
        "system": platform.system(),
        "kernel": platform.release(),
        "machine": platform.machine(),
        "boot_id": _line(proc / "sys/kernel/random/boot_id"),
        "cpu_model": _cpu_model(proc),
        "cpus": os.cpu_count(),
        "cpus_allowed": sorted(os.sched_getaffinity(0)),
        "memory_bytes": _memory_bytes(proc),
        "address_space_randomised": _line(proc / "sys/kernel/randomize_va_space"),
        "time_zone": datetime.now().astimezone().tzname(),
    }


def covariates(proc: Path = PROC) -> dict[str, float | None]:
    """What is observed, not set, beside one trial: read outside the timed region."""
    text = _line(proc / "loadavg")
    return {"load_1_minute": None if text is None else float(text.split()[0])}


def _own_version() -> str | None:
    try:
        return version("equipoise")
    except PackageNotFoundError:
        return None


def _line(path: Path) -> str | None:
    try:
        return path.read_text(encoding="utf-8", errors="replace").strip()
    except OSError:
        return None


def _value_after(path: Path, key: str) -> str | None:
    text = _line(path)
    for line in (text or "").splitlines():
        name, colon, value = line.partition(":")
        if colon and name.strip() == key:
            return value.strip()
    return None


def _cpu_model(proc: Path) -> str | None:
    return _value_after(proc / "cpuinfo", "model name")


def _memory_bytes(proc: Path) -> int | None:
    value = _value_after(proc / "meminfo", "MemTotal")
    return None if value is None else int(value.split()[0]) * 1024
