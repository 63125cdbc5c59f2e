"""Campaigns on three hosts of one machine, with real faults; what they cost. In reading order:

network      hosts in network namespaces, whose cables can be pulled
nap.c        the planted program: it sleeps, so that many of them fit on one machine
fleet        the processes of a fleet: scheduler, supervisors, coordinator
faults       what goes wrong, and when
checks       what must hold at the end
__main__     twenty repetitions
overhead     a campaign through a cluster beside the same campaign alone
"""
