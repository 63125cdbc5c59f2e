"""Campaigns on the hosts of a Dask cluster. Every host is a complete laboratory.

A campaign is a detached process of its host and takes the ordinary path: launcher, coin, local
ledger. Tasks of Dask only start it and ask for its progress. In reading order:

address      addresses of clusters, and which of them may be used without encryption
connection   the connection to a scheduler, for campaigns, searches and observations
messages     the messages between a coordinator and a host
roster       short tasks on workers; the connected workers, and the host of each
equality     the comparison of hosts before a campaign; the files that they lack
coordinator  the coordinator, which follows each host to the end of its campaign
tasks        the tasks that a coordinator runs on a host
folders      the folder of a host's campaign, and whether its process is alive
laboratory   that process: a host's campaign
files        files by their digests, shipped files, and paths that differ between hosts
own_clusters clusters that Equipoise starts itself: on this host, through SSH
worker       the supervisor of a host's Dask worker
strata       the strata of a log on the workers of a cluster
"""
