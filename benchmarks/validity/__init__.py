"""False alarms, power and coverage of Equipoise by simulation, beside the rules of other tools.

``python -m benchmarks.validity``; see README.md in this folder.
"""
