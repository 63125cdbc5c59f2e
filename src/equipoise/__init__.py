"""Equipoise: is one thing really faster than another, by how much, and why."""
