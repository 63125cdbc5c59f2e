"""The tables of AnandTech's article of 2005; their rows are probes, as in `equipoise os`."""

from __future__ import annotations

from equipoise.model.kinds import Kind

KIND = Kind(
    "anandtech2005",
    report="equipoise_studies.primitives.report:PrimitivesReport",
    figures="equipoise_studies.primitives.report:PrimitivesFigures",
)
