"""The options of a cluster of hosts, and what goes with none."""

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
from equipoise.cluster.address import FORMS, read_address
from equipoise.model.errors import UnusableInput

if TYPE_CHECKING:
    from equipoise.cluster.connection import ClusterAccess

cluster_access_options = option_group(
    flag(
        "--insecure",
        help="Speak in the clear with a cluster outside of a private network: whoever is on the "
        "way can then run code as you.",
    ),
    file_option(
        "--tls-ca",
        metavar="FILE.pem",
        help="Certificate of the authority that the scheduler's certificate is checked by.",
    ),
    file_option(
        "--tls-cert",
        metavar="FILE.pem",
        help="Your own certificate, by which the scheduler checks you.",
    ),
    file_option("--tls-key", metavar="FILE.pem", help="The private key of --tls-cert."),
)


def cluster_option(purpose: str) -> Option:
    """Return ``--cluster`` and what says how it may be spoken to.

    Parameters
    ----------
    purpose
        What the cluster is for, as the help says it: "Measure on every host".
    """
    return option_group(
        click.option(
            "--cluster",
            metavar="ADDRESS",
            help=f"{purpose} of a Dask cluster: {FORMS}. Whoever answers there can run code "
            "as you.",
        ),
        cluster_access_options,
    )


host_timeout_option = number_option(
    "--host-timeout",
    metavar="SECONDS",
    show_default="300",
    help="With --cluster: end without a host that gave no answer for so long; `equipoise resume` "
    "asks it again.",
)
fleet_options = option_group(
    cluster_option("Measure on every host"),
    flag("--ship", help="With --cluster: send the programs and inputs to hosts that have others."),
    host_timeout_option,
)


class ClusterOptions(Struct, frozen=True):
    """A cluster, and how it may be spoken to."""

    cluster: str | None = None
    """Address; ``None`` for this host alone."""
    insecure: bool = False
    tls_ca: Path | None = None
    tls_cert: Path | None = None
    tls_key: Path | None = None

    def access(self) -> ClusterAccess | None:
        """Return the cluster that the options name; ``None`` without ``--cluster``.

        Raise `UnusableInput` if the address is none, is unprotected, or options do not fit
        together.
        """
        files = {option_named(name): getattr(self, name) for name in _TLS_FILES}
        missing = [name for name, file in files.items() if file is None]
        if self.cluster is None:
            if len(missing) < len(files):
                raise UnusableInput("TLS files without --cluster", hint="name the cluster")
            if self.insecure:
                raise UnusableInput("--insecure without --cluster", hint="name the cluster")
            return None
        if missing and len(missing) < len(files):
            raise UnusableInput(
                f"{' and '.join(missing)} missing: TLS needs three files",
                hint="give --tls-ca, --tls-cert and --tls-key together, or none of them",
            )
        from equipoise.cluster.connection import ClusterAccess, TlsFiles

        tls = None if missing else TlsFiles(*files.values())
        return ClusterAccess(read_address(self.cluster), tls, self.insecure)


_TLS_FILES = ("tls_ca", "tls_cert", "tls_key")


class HostOptions(Struct, frozen=True):
    """The hosts that a campaign runs on, and the options that one host alone takes."""

    cluster: ClusterOptions = ClusterOptions()
    ship: bool = False
    """Whether hosts are sent the programs and inputs that they lack."""
    host_timeout: float | None = None
    """Seconds without an answer after which a host is given up."""
    exports: HyperfineExports = HyperfineExports()
    why: bool = False
    what_varies: bool = False
    adjust: bool = False
    layouts: int | None = None
    against_file: Path | None = None
    outputs: tuple[str, ...] = ()

    def access(self) -> ClusterAccess | None:
        """Return the cluster to measure on; ``None`` for this host alone.

        Raise `UnusableInput` if the address is none or unprotected, or an option does not go with
        ``--cluster``.
        """
        access = self.cluster.access()
        if access is None:
            needing = {"--ship": self.ship, "--host-timeout": self.host_timeout is not None}
            for option in (option for option, is_given in needing.items() if is_given):
                raise UnusableInput(
                    f"{option} without --cluster", hint="leave it out, or name the cluster"
                )
            return None
        for option, value, reason in self._for_one_host():
            if value:
                raise UnusableInput(
                    f"{option} does not go with --cluster: {reason}",
                    hint="leave it out, or measure on one host",
                )
        if "inherit" in self.outputs:
            raise UnusableInput(
                "--output inherit does not go with --cluster: the terminal is on another host",
                hint="leave it out, or name a file, which each host writes",
            )
        return access

    def _for_one_host(self) -> tuple[tuple[str, object, str], ...]:
        """Return the options that do not go with ``--cluster``: name, value and reason."""
        times = "hyperfine's formats hold the times of one host"
        return (
            ("--why", self.why, "what explains a gap is observed on one host"),
            ("--what-varies", self.what_varies, "the sources of chance are those of one host"),
            ("--adjust", self.adjust, "what holds over hosts rests on unadjusted blocks"),
            ("--layouts", self.layouts, "what holds over hosts rests on blocks, not on layouts"),
            ("--against", self.against_file, "a reference result is compared with one host"),
            *((f"--export-{form}", file, times) for form, file in self.exports.files().items()),
        )
