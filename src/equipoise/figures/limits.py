"""How much one page may hold."""

from __future__ import annotations

EVERY_TRIAL = 5000
"""Up to so many trials each is drawn; beyond, they are binned, and the figure says so."""
