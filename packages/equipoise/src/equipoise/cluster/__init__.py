"""Campaigns on the hosts of a Dask cluster.

On each host, a separate process runs the campaign as on a single host: with the launcher, the coin
and the ledger of the host. Dask only starts this process and reads its progress. In reading order:

address           addresses of clusters, and which of them may be used without encryption
connection        the connection to a scheduler
messages          the messages between a coordinator and a host
roster            the connected workers with their hosts, and short tasks on them
equality          the comparison of hosts before a campaign; sends missing files to hosts
coordinator       the coordinator, which follows each host to the end of its campaign
tasks             the tasks that a coordinator runs on a host
folders           the folder of a host's campaign, and whether its process is alive
campaign_process  the process that runs a host's campaign
files             files by their digests, files sent to hosts, paths that differ between hosts
own_clusters      clusters that Equipoise starts itself, on this host or through SSH
worker            the supervisor of a host's Dask worker
strata            the strata (groups of rows) of a log, analysed on the workers of a cluster
"""
