"""The options of commands, each declared once, and the structs that hold their values.

declaration  helpers that declare options; a decorator that makes one typed request of all options
limits       when a campaign stops, and how strict its verdict is
outputs      where a result goes: ledger, document, report, figures, hyperfine's formats
cluster      the hosts of a campaign
tables       the columns of a table, and which of its rows may be matched with each other
"""

from equipoise.cli.options.cluster import (
    ClusterOptions,
    HostOptions,
    cluster_access_options,
    cluster_option,
    fleet_options,
    host_timeout_option,
)
from equipoise.cli.options.declaration import (
    Option,
    file_option,
    flag,
    names_option,
    number_option,
    option_group,
    option_named,
    pass_request,
    split_names,
)
from equipoise.cli.options.limits import (
    judging_options,
    layout_options,
    patient_option,
    ranking_option,
    seed_option,
    stopping_options,
    timeout_option,
    warmup_option,
)
from equipoise.cli.options.outputs import (
    HyperfineExports,
    OutputOptions,
    against_option,
    campaign_files,
    color_option,
    concurrent_option,
    durable_option,
    figures_option,
    host_option,
    host_options,
    hyperfine_exports,
    json_option,
    ledger_option,
    no_test_option,
    output_options,
    report_option,
    show_env_option,
    verbose_option,
    why_option,
)

__all__ = [
    "ClusterOptions",
    "HostOptions",
    "HyperfineExports",
    "Option",
    "OutputOptions",
    "against_option",
    "campaign_files",
    "cluster_access_options",
    "cluster_option",
    "color_option",
    "concurrent_option",
    "durable_option",
    "figures_option",
    "file_option",
    "flag",
    "fleet_options",
    "host_option",
    "host_options",
    "host_timeout_option",
    "hyperfine_exports",
    "json_option",
    "judging_options",
    "layout_options",
    "ledger_option",
    "split_names",
    "names_option",
    "no_test_option",
    "number_option",
    "option_named",
    "option_group",
    "output_options",
    "patient_option",
    "ranking_option",
    "report_option",
    "pass_request",
    "seed_option",
    "show_env_option",
    "stopping_options",
    "timeout_option",
    "verbose_option",
    "warmup_option",
    "why_option",
]
