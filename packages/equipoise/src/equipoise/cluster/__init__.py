"""Campaigns on the hosts of a Dask cluster. Every host is a complete laboratory.

A campaign is a detached process of its host and takes the ordinary path: launcher, coin, local
ledger. Tasks of Dask only start this process and read its progress. In reading order:

address           addresses of clusters, and which of them may be used without encryption
connection        the connection to a scheduler, for campaigns, searches and observations
messages          the messages between a coordinator and a host
roster            the connected workers with their hosts, and short tasks on them
equality          the comparison of hosts before a campaign, and shipping of missing files
coordinator       the coordinator, which follows each host to the end of its campaign
tasks             the tasks that a coordinator runs on a host
folders           the folder of a host's campaign, and whether its process is alive
campaign_process  the process that runs a host's campaign
files             files by their digests, shipped files, and paths that differ between hosts
own_clusters      clusters that Equipoise starts itself, on this host or through SSH
worker            the supervisor of a host's Dask worker
strata            the strata (groups of rows) of a log, analysed on the workers of a cluster
"""
