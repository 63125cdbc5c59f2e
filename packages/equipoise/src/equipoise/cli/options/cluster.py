"""The options of a cluster of hosts, and the options that exclude a cluster."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click
from msgspec import Struct

from equipoise.cli.options.declaration import (
    Option,
    file_option,
    flag,
    number_option,
    option_group,
    option_named,
)
from equipoise.cli.options.outputs import HyperfineExports
from equipoise.cluster.address import ADDRESS_FORMATS, read_address
from equipoise.model.errors import UnusableInput

if TYPE_CHECKING:
    from equipoise.cluster.connection import ClusterAccess

cluster_access_options = option_group(
    flag(
        "--insecure",
        help="Do not encrypt the connection to a cluster outside of a private network: anyone on "
        "the network path can then run code as you.",
    ),
    file_option(
        "--tls-ca",
        metavar="FILE.pem",
        help="Certificate of the authority that signed the scheduler's certificate.",
    ),
    file_option(
        "--tls-cert", metavar="FILE.pem", help="Your own certificate, which the scheduler checks."
    ),
    file_option("--tls-key", metavar="FILE.pem", help="The private key of --tls-cert."),
)


def cluster_option(purpose: str) -> Option:
    """Return ``--cluster`` and the options that protect the connection.

    ``purpose`` is the beginning of the help text, such as "Measure on every host".
    """
    return option_group(
        click.option(
            "--cluster",
            metavar="ADDRESS",
            help=f"{purpose} of a Dask cluster: {ADDRESS_FORMATS}. Whoever controls this address "
            "can run code as you.",
        ),
        cluster_access_options,
    )


host_timeout_option = number_option(
    "--host-timeout",
    metavar="SECONDS",
    show_default="300",
    help="With --cluster: give up a host after this many seconds without an answer; `equipoise "
    "resume` tries again.",
)
fleet_options = option_group(
    cluster_option("Measure on every host"),
    flag("--ship", help="With --cluster: copy programs and inputs to hosts where they differ."),
    host_timeout_option,
)


class ClusterOptions(Struct, frozen=True):
    """Address of a cluster, and the protection of the connection."""

    cluster: str | None = None
    """Address of the scheduler; ``None`` to use this host alone."""
    insecure: bool = False
    tls_ca: Path | None = None
    tls_cert: Path | None = None
    tls_key: Path | None = None

    def access(self) -> ClusterAccess | None:
        """Return the cluster that the options name; ``None`` without ``--cluster``.

        Raise `UnusableInput` if the address is invalid or unprotected, or if options exclude each
        other.
        """
        files = {option_named(name): getattr(self, name) for name in _TLS_FILES}
        missing_options = [name for name, file in files.items() if file is None]
        if self.cluster is None:
            if len(missing_options) < len(files):
                raise UnusableInput("TLS files are given without --cluster", hint=_ADD_CLUSTER)
            if self.insecure:
                raise UnusableInput("--insecure is given without --cluster", hint=_ADD_CLUSTER)
            return None
        if missing_options and len(missing_options) < len(files):
            raise UnusableInput(
                f"TLS needs three files, and these are missing: {', '.join(missing_options)}",
                hint="give --tls-ca, --tls-cert and --tls-key together, or none of them",
            )
        from equipoise.cluster.connection import ClusterAccess, TlsFiles

        tls = None if missing_options else TlsFiles(*files.values())
        return ClusterAccess(read_address(self.cluster), tls, self.insecure)


_TLS_FILES = ("tls_ca", "tls_cert", "tls_key")
"""Fields of `ClusterOptions` with files, in the order of the fields of `TlsFiles`."""
_ADD_CLUSTER = f"add --cluster ADDRESS; an address is {ADDRESS_FORMATS}"
"""Hint for an option that needs ``--cluster``."""


class HostOptions(Struct, frozen=True):
    """The hosts that a campaign runs on, and the options that work on one host only."""

    cluster: ClusterOptions = ClusterOptions()
    ship: bool = False
    """Whether to copy programs and inputs to hosts where they are different or missing."""
    host_timeout: float | None = None
    """Seconds without an answer after which Equipoise gives up a host."""
    exports: HyperfineExports = HyperfineExports()
    why: bool = False
    what_varies: bool = False
    adjust: bool = False
    duet: bool = False
    layouts: int | None = None
    against_file: Path | None = None
    outputs: tuple[str, ...] = ()

    def access(self) -> ClusterAccess | None:
        """Return the cluster to measure on; ``None`` for this host alone.

        Raise `UnusableInput` if the address is invalid or unprotected, or if an option cannot be
        combined with ``--cluster``.
        """
        access = self.cluster.access()
        if access is None:
            cluster_only = {"--ship": self.ship, "--host-timeout": self.host_timeout is not None}
            for option, is_given in cluster_only.items():
                if is_given:
                    raise UnusableInput(
                        f"{option} is given without --cluster",
                        hint=f"remove {option}, or add --cluster ADDRESS",
                    )
            return None
        for option, value, reason in self._options_for_one_host():
            if value:
                raise UnusableInput(
                    f"{option} cannot be combined with --cluster: {reason}",
                    hint=f"remove {option}, or measure on one host without --cluster",
                )
        if "inherit" in self.outputs:
            raise UnusableInput(
                "--output inherit cannot be combined with --cluster: the commands run on other "
                "hosts, which have no terminal",
                hint="remove --output, or name a file, which each host writes",
            )
        return access

    def _options_for_one_host(self) -> tuple[tuple[str, object, str], ...]:
        """Return the options that cannot be combined with ``--cluster``: name, value and reason."""
        export_reason = "hyperfine's formats have the times of one host"
        return (
            ("--why", self.why, "a gap is explained on one host"),
            ("--what-varies", self.what_varies, "the sources of chance of one host are examined"),
            ("--adjust", self.adjust, "the result over hosts uses unadjusted blocks"),
            ("--duet", self.duet, "the pilot and the CPUs of one host are used"),
            ("--layouts", self.layouts, "the result over hosts uses blocks, not layouts"),
            ("--against", self.against_file, "a reference result is compared with one host"),
            *(
                (f"--export-{name}", file, export_reason)
                for name, file in self.exports.files().items()
            ),
        )
