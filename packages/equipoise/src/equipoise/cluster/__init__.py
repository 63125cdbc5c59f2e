"""Campaigns on the hosts of a Dask cluster. Every host is a complete laboratory of its own.

A campaign is a detached process of its host by the ordinary path: launcher, coin, local ledger.
Tasks of Dask only start it and ask how it goes. In reading order:

address      how a cluster is named, and which may be spoken to in the clear
connection   the connection to a scheduler, for campaigns, searches and observations
messages     what a coordinator and a host send each other
roster       short tasks on workers; which workers answer now, and which host each belongs to
equality     hosts before a campaign: compared, and given the files that they lack
coordinator  following each host to its end, whatever becomes of it
tasks        what a coordinator asks of a host
folders      the folder of a host's campaign, and whether its process lives
laboratory   that process: a host's campaign
files        files by their digests, shipped files, and paths that lie elsewhere on every host
own_clusters clusters that Equipoise starts itself: on this host, through SSH
worker       the supervisor of a host's Dask worker
strata       the strata of a log on the workers of a cluster
"""
