"""From options and studies to conditions and blocks, and the coin that orders blocks.

- ``commands``: commands become conditions: words, parameters, names, environments, programs.
- ``limits``: the limits of a campaign as numbers, with their ranges and errors.
- ``coin``: the seeded random source of every order.
- ``layouts``: memory layouts that the coin draws, and programs linked in many layouts.
- ``site``: the facts of the host that a study needs, and the things that the host lacks.
- ``grid``: the conditions and contrasts of a study.
- ``chance``: sources of chance in one command, held one at a time.
- ``libraries``: allocators and BLAS libraries as levels of factors.
- ``command_line``: the command line that repeats a run.
"""
