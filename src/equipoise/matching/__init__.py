"""Matching: the effect of a treatment from units that did and units that did not get it."""

from equipoise.matching.match import match
from equipoise.matching.result import MatchResult

__all__ = ["MatchResult", "match"]
