"""Why one condition takes longer: evidence, causes, interventions."""
