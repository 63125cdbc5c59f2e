"""Connecting to a scheduler: garbage and other servers are named at once, TLS files are used."""

from __future__ import annotations

import os
import signal
import socket
import ssl
import subprocess
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from equipoise.cluster.address import LocalWorkers, read_scheduler
from equipoise.cluster.connection import (
    ClusterAccess,
    TlsFiles,
    cluster_client,
    connect,
    running_scheduler,
)
from equipoise.model.errors import UnusableInput
from packages.equipoise.tests.clusters import encrypted_scheduler, litter_collected

PATIENCE_S = 300.0
"""Many times what a connection takes on a busy host, where five seconds have been too few."""


@pytest.mark.parametrize(
    "address",
    ["garbage", "", "tcp://", "tcp://host", "tcp://host:port", "tcp://host:99999", "http://host:1"],
)
def test_garbage_is_no_address(address: str) -> None:
    with pytest.raises(UnusableInput, match="is not the address of a scheduler") as caught:
        connect(address, timeout_s=1)
    assert "tcp://HOST:PORT" in str(caught.value.hint)


@contextmanager
def server_that_says(greeting: bytes) -> Iterator[str]:
    """The address of a server that says these words to whoever connects, and hangs up."""
    with socket.create_server(("127.0.0.1", 0)) as server:

        def answer() -> None:
            connection, _ = server.accept()
            with connection:
                connection.sendall(greeting)

        thread = threading.Thread(target=answer)
        thread.start()
        yield f"tcp://127.0.0.1:{server.getsockname()[1]}"
        thread.join()


@pytest.mark.parametrize("greeting", [b"HTTP/1.0 400 Bad request\r\n\r\n", b"SSH", b"", b"\0" * 8])
def test_another_server_is_no_scheduler(greeting: bytes) -> None:
    with (
        server_that_says(greeting) as address,
        pytest.raises(UnusableInput, match="the server at this address is not a Dask scheduler"),
    ):
        connect(address, timeout_s=PATIENCE_S)


@pytest.fixture(scope="module")
def tls(tmp_path_factory: pytest.TempPathFactory) -> TlsFiles:
    return certificate_in(tmp_path_factory.mktemp("tls"))


def certificate_in(folder: Path) -> TlsFiles:
    """A new certificate that is its own authority, and its key."""
    files = TlsFiles(folder / "certificate.pem", folder / "certificate.pem", folder / "key.pem")
    curve = ("-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes")
    subprocess.run(
        ["openssl", "req", "-x509", *curve, "-days", "2", "-subj", "/CN=127.0.0.1"]
        + ["-keyout", str(files.key), "-out", str(files.certificate)],
        check=True,
        capture_output=True,
    )
    return files


@pytest.mark.live("openssl", package="openssl")
def test_scheduler_with_tls_accepts_only_clients_with_its_certificate(
    tls: TlsFiles, tmp_path: Path
) -> None:
    with encrypted_scheduler(tls.authority, tls.key) as address, litter_collected():
        with connect(address, tls=tls, timeout_s=PATIENCE_S) as client:
            assert client.scheduler_info()["type"] == "Scheduler"
        with pytest.raises(UnusableInput, match="unknown ca|certificate"):
            connect(address, tls=certificate_in(tmp_path), timeout_s=PATIENCE_S)
        with pytest.raises(UnusableInput, match="needs TLS files"):
            connect(address)


@pytest.mark.live("openssl", package="openssl")
def test_tls_files_that_cannot_be_used_are_named(tls: TlsFiles, tmp_path: Path) -> None:
    address, nowhere = "tls://127.0.0.1:1", tmp_path / "nowhere.pem"
    for files, message in (
        (TlsFiles(nowhere, tls.certificate, tls.key), f"there is no TLS file {nowhere}"),
        (TlsFiles(tls.authority, nowhere, tls.key), f"there is no TLS file {nowhere}"),
        (TlsFiles(tls.authority, tls.certificate, nowhere), f"there is no TLS file {nowhere}"),
        (TlsFiles(tls.key, tls.certificate, tls.key), f"{tls.key} cannot be used"),
        (TlsFiles(tls.authority, tls.certificate, tls.certificate), "cannot be used"),
    ):
        with pytest.raises(UnusableInput) as caught:
            connect(address, tls=files)
        assert message in caught.value.what
    with pytest.raises(UnusableInput, match="would not be encrypted"):
        connect("tcp://127.0.0.1:1", tls=tls)


@pytest.mark.live("openssl", package="openssl")
def test_a_pipe_in_the_place_of_a_certificate_is_refused_at_once(
    tls: TlsFiles, tmp_path: Path
) -> None:
    pipe = tmp_path / "pipe.pem"
    os.mkfifo(pipe)
    for files in (
        TlsFiles(pipe, tls.certificate, tls.key),
        TlsFiles(tls.authority, pipe, tls.key),
        TlsFiles(tls.authority, tls.certificate, pipe),
    ):
        with pytest.raises(UnusableInput, match=f"{pipe} is not a regular file"):
            connect("tls://127.0.0.1:1", tls=files)


@pytest.mark.live("openssl", package="openssl")
def test_a_scheduler_with_another_certificate_has_a_hint_about_certificates(
    tls: TlsFiles, tmp_path: Path
) -> None:
    with encrypted_scheduler(tls.authority, tls.key) as address, litter_collected():
        with pytest.raises(UnusableInput, match="certificate of the scheduler") as caught:
            connect(address, tls=certificate_in(tmp_path), timeout_s=PATIENCE_S)
    assert "--tls-ca" in str(caught.value.hint)


def test_workers_of_this_host_reject_clients_without_their_key() -> None:
    stranger = ssl.create_default_context()
    stranger.check_hostname = False
    stranger.verify_mode = ssl.CERT_NONE
    access = ClusterAccess(LocalWorkers("local:0", 0))
    with litter_collected(), running_scheduler(access) as address:
        with connect(address, timeout_s=PATIENCE_S) as client:
            assert client.scheduler_info()["type"] == "Scheduler"
        port = read_scheduler(address).port
        with (
            socket.create_connection(("127.0.0.1", port), PATIENCE_S) as plain,
            pytest.raises(ssl.SSLError, match="certificate required|certificate_required"),
            stranger.wrap_socket(plain) as connection,
        ):
            connection.recv(8)


def test_a_cluster_with_a_key_of_its_own_takes_no_tls_files(tmp_path: Path) -> None:
    files = TlsFiles(tmp_path / "ca", tmp_path / "certificate", tmp_path / "key")
    with (
        pytest.raises(UnusableInput, match="local:1 makes its own key"),
        running_scheduler(ClusterAccess(LocalWorkers("local:1", 1), files)),
    ):
        pytest.fail("it was started")


def test_ctrl_c_on_the_terminal_ends_no_worker_of_this_host() -> None:
    handler = signal.getsignal(signal.SIGINT)
    access = ClusterAccess(LocalWorkers("local:1", 1))
    with litter_collected(), cluster_client(access) as client:
        assert signal.getsignal(signal.SIGINT) is handler
        assert list(client.run(ignores_interrupts).values()) == [True]


def ignores_interrupts() -> bool:
    """Whether SIGINT does nothing to this process."""
    return signal.getsignal(signal.SIGINT) is signal.SIG_IGN
