"""The key of a cluster that Equipoise starts itself: made for it alone, and kept in no file.

A scheduler without one obeys everybody who reaches its port, also another user of this host. The
pages that Dask serves about a cluster are in the clear: none are served.
"""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

from equipoise.model.extras import require

VALIDITY = timedelta(days=365)


def key_settings(purpose: str) -> dict[str, Any]:
    """Return settings of Dask with a new key: who has it belongs to the cluster, and nobody else.

    Parameters
    ----------
    purpose
        What needs the package ``cryptography``, in the plural.

    Raises
    ------
    UnusableInput
        It is not installed.
    """
    x509 = require("cryptography.x509", purpose, "cluster")
    from cryptography.hazmat.primitives import hashes, serialization
    from cryptography.hazmat.primitives.asymmetric import ec

    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, "equipoise cluster")])
    now = datetime.now(UTC)
    certificate = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        # Clocks of the hosts may be apart by hours.
        .not_valid_before(now - VALIDITY)
        .not_valid_after(now + VALIDITY)
        .sign(key, hashes.SHA256())
    )
    private = key.private_bytes(
        serialization.Encoding.PEM,
        serialization.PrivateFormat.PKCS8,
        serialization.NoEncryption(),
    ).decode()
    public = certificate.public_bytes(serialization.Encoding.PEM).decode()
    settings: dict[str, Any] = {
        "distributed.scheduler.http.routes": [],
        "distributed.worker.http.routes": [],
        "distributed.comm.require-encryption": True,
        "distributed.comm.tls.ca-file": public,
    }
    for role in ("client", "scheduler", "worker"):
        settings[f"distributed.comm.tls.{role}.cert"] = public
        settings[f"distributed.comm.tls.{role}.key"] = private
    return settings
