"""Change-points of series over commits with known truth: Equipoise, ruptures, Otava and asv."""
