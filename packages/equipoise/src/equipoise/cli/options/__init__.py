"""The options of commands, each declared once, and the structs that hold their values.

declaration  helpers that declare options; a decorator that makes a typed request of the options
limits       when a campaign stops, and how strict its verdict is
outputs      where a result goes: ledger, document, report, figures, hyperfine's formats
cluster      the hosts of a campaign
tables       the columns of a table, and the rules for matching its rows
"""

from equipoise.cli.options.cluster import ClusterOptions as ClusterOptions
from equipoise.cli.options.cluster import HostOptions as HostOptions
from equipoise.cli.options.cluster import cluster_access_options as cluster_access_options
from equipoise.cli.options.cluster import cluster_option as cluster_option
from equipoise.cli.options.cluster import fleet_options as fleet_options
from equipoise.cli.options.cluster import host_timeout_option as host_timeout_option
from equipoise.cli.options.declaration import Option as Option
from equipoise.cli.options.declaration import file_option as file_option
from equipoise.cli.options.declaration import flag as flag
from equipoise.cli.options.declaration import names_option as names_option
from equipoise.cli.options.declaration import number_option as number_option
from equipoise.cli.options.declaration import option_group as option_group
from equipoise.cli.options.declaration import option_named as option_named
from equipoise.cli.options.declaration import pass_request as pass_request
from equipoise.cli.options.declaration import split_names as split_names
from equipoise.cli.options.limits import judging_options as judging_options
from equipoise.cli.options.limits import layout_options as layout_options
from equipoise.cli.options.limits import patient_option as patient_option
from equipoise.cli.options.limits import ranking_option as ranking_option
from equipoise.cli.options.limits import seed_option as seed_option
from equipoise.cli.options.limits import stopping_options as stopping_options
from equipoise.cli.options.limits import timeout_option as timeout_option
from equipoise.cli.options.limits import warmup_option as warmup_option
from equipoise.cli.options.outputs import HyperfineExports as HyperfineExports
from equipoise.cli.options.outputs import OutputOptions as OutputOptions
from equipoise.cli.options.outputs import against_options as against_options
from equipoise.cli.options.outputs import campaign_files as campaign_files
from equipoise.cli.options.outputs import color_option as color_option
from equipoise.cli.options.outputs import concurrent_option as concurrent_option
from equipoise.cli.options.outputs import durable_option as durable_option
from equipoise.cli.options.outputs import figures_option as figures_option
from equipoise.cli.options.outputs import host_option as host_option
from equipoise.cli.options.outputs import host_options as host_options
from equipoise.cli.options.outputs import hyperfine_exports as hyperfine_exports
from equipoise.cli.options.outputs import json_option as json_option
from equipoise.cli.options.outputs import ledger_option as ledger_option
from equipoise.cli.options.outputs import no_test_option as no_test_option
from equipoise.cli.options.outputs import output_options as output_options
from equipoise.cli.options.outputs import report_option as report_option
from equipoise.cli.options.outputs import show_env_option as show_env_option
from equipoise.cli.options.outputs import verbose_option as verbose_option
from equipoise.cli.options.outputs import why_options as why_options
