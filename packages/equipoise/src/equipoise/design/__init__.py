"""Makes conditions from options and studies, and draws the order of trials.

- ``commands``: makes conditions from commands, with their parameters, names and environments
- ``limits``: the limits of a campaign as numbers, with their ranges and errors
- ``coin``: the seeded random source of every order
- ``layouts``: memory layouts that the coin draws, and programs linked in many layouts
- ``site``: the facts of the host that a study needs, and the things that the host lacks
- ``grid``: makes the conditions and contrasts of a study
- ``chance``: sources of chance that make the times of one command vary
- ``libraries``: allocators and BLAS libraries as levels of factors
- ``command_line``: the command line that repeats a run
"""
