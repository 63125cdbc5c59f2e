"""From options and studies to conditions, blocks and the coin that orders them.

commands     commands become conditions: words, parameters, names, environments, programs
limits       the numbers that limit and judge a campaign, with their ranges and errors
coin         the seeded random source of every order
layouts      memory layouts that the coin draws, and programs linked in many of them
site         the host as a study needs it, and what it lacks
grid         a study becomes conditions and contrasts
chance       sources of chance in one command, held one at a time
libraries    allocators and BLAS libraries that can replace others, as levels of factors
"""
