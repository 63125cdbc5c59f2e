"""The built-in studies of Equipoise, their workloads and probes, and `equipoise os`.

Entry points register the studies, the kinds of campaign, and the folder ``_bin`` with
``equipoise-workload``, ``equipoise-probe`` and the allocator ``libequipoise_dlmalloc.so``. In
reading order:

- ``primitives``: primitives of the operating system, and the command `equipoise os`
- ``study_data``: the numbers of a result by the levels of its factors
- ``ranking``: levels ranked on each task, as tables, sentences and a chart
- ``rank_correlation``: Spearman's correlation of two quantities
- ``load_generators``: clients of database servers
- ``builtin``: a folder for each study
"""
