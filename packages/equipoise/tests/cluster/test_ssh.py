"""Clusters through SSH: the file of hosts, and a cluster by a real OpenSSH server on loopback."""

from __future__ import annotations

import os
import shlex
import shutil
import socketserver
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from equipoise.cluster.own_clusters import SshHost, read_hosts, ssh_cluster
from equipoise.cluster.worker import DASK_FOLDER
from equipoise.model.errors import UnusableInput
from packages.equipoise.tests.cluster.test_own_clusters import writable_by_others
from packages.equipoise.tests.clusters import litter_collected

distributed = pytest.importorskip("distributed")
pytest.importorskip("asyncssh", reason="asyncssh of the extra `cluster` is not installed")


def hosts_file(folder: Path, text: str) -> Path:
    file = folder / "hosts.txt"
    file.write_text(text)
    return file


def test_line_names_a_host_and_its_options(tmp_path: Path) -> None:
    text = """
    # our machines
    bench1
    root@10.0.0.2:2222 python=/opt/eq/bin/python folder=/srv/bench name=left  # the older one
    [fe80::1%eth0]:22
    """
    assert read_hosts(hosts_file(tmp_path, text)) == (
        SshHost("bench1"),
        SshHost("10.0.0.2", "root", 2222, "/opt/eq/bin/python", "/srv/bench", "left"),
        SshHost("fe80::1%eth0", port=22),
    )


@pytest.mark.parametrize(
    "line",
    [
        *(
            "bench1:0",
            "bench1:70000",
            "a@b@c",
            "bench1 python",
            "bench1 name=",
            "bench1 colour=red",
        ),
        *("bench1 name=a name=b", "bench1 bench2"),
    ],
)
def test_a_line_of_another_form_is_refused_with_its_number(tmp_path: Path, line: str) -> None:
    file = hosts_file(tmp_path, f"bench0\n{line}\n")
    with pytest.raises(UnusableInput, match=f"line 2 of {file} does not describe a host"):
        read_hosts(file)


def test_a_file_without_hosts_is_refused(tmp_path: Path) -> None:
    with pytest.raises(UnusableInput, match="names no host"):
        read_hosts(hosts_file(tmp_path, "# none yet\n"))


def test_a_folder_and_a_name_reach_the_interpreter_as_they_are(tmp_path: Path) -> None:
    folder = tmp_path / "a folder"
    folder.mkdir()
    host = SshHost("bench1", python=sys.executable, folder=str(folder), name="the left one; or not")
    program = "import os; print(os.getcwd()); print(os.environ['EQUIPOISE_HOST'])"
    line = f"{host.python_line()} -c {shlex.quote(program)}"
    done = subprocess.run(line, shell=True, capture_output=True, text=True, check=True)
    assert done.stdout.splitlines() == [str(folder), "the left one; or not"]


@pytest.fixture
def ssh_port(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[int]:
    """Port of an SSH server on loopback that lets this user in, by keys of the test alone."""
    sshd = str(shutil.which("sshd"))  # sshd asks to be started by its whole path
    server_key, user = tmp_path / "server_key", tmp_path / ".ssh"
    user.mkdir(mode=0o700)
    for key in (server_key, user / "id_ed25519"):
        subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", key], check=True)
    configuration = tmp_path / "sshd_config"
    configuration.write_text(
        f"HostKey {server_key}\nAuthorizedKeysFile {user}/id_ed25519.pub\n"
        "PasswordAuthentication no\nKbdInteractiveAuthentication no\nUsePAM no\nStrictModes no\n"
    )

    class Connection(socketserver.BaseRequestHandler):
        def handle(self) -> None:
            ends = {"stdin": self.request, "stdout": self.request, "stderr": subprocess.DEVNULL}
            subprocess.run([sshd, "-i", "-f", configuration], check=False, **ends)

    with separation_folder(), socketserver.ThreadingTCPServer(("127.0.0.1", 0), Connection) as tcp:
        port: int = tcp.server_address[1]
        kind, key_text, *_ = server_key.with_suffix(".pub").read_text().split()
        (user / "known_hosts").write_text(f"[127.0.0.1]:{port} {kind} {key_text}\n")
        monkeypatch.setenv("HOME", str(tmp_path))
        threading.Thread(target=tcp.serve_forever).start()
        yield port
        tcp.shutdown()


class separation_folder:
    """The folder that Debian's service makes for sshd, for as long as the block."""

    FOLDER = Path("/run/sshd")

    def __enter__(self) -> None:
        self.made = os.geteuid() == 0 and not self.FOLDER.exists()
        if self.made:
            self.FOLDER.mkdir(mode=0o755)

    def __exit__(self, *_: object) -> None:
        if self.made:
            self.FOLDER.rmdir()


needs_sshd = pytest.mark.live("sshd", "ssh-keygen", package="openssh-server")


@needs_sshd
def test_hosts_that_are_reached_through_ssh_form_an_encrypted_cluster(
    tmp_path: Path, ssh_port: int
) -> None:
    folders = [tmp_path / name for name in ("left", "right")]
    lines = []
    for folder in folders:
        folder.mkdir()
        lines.append(f"127.0.0.1:{ssh_port} folder={folder} name={folder.name}\n")
    with litter_collected(), ssh_cluster(hosts_file(tmp_path, "".join(lines))) as address:
        assert address.startswith("tls://")
        with distributed.Client(address, set_as_default=False) as client:
            where = client.run(os.getcwd)
            who = client.run(os.getenv, "EQUIPOISE_HOST")
            workers = client.scheduler_info()["workers"].values()
            of_scheduler = client.run_on_scheduler(
                lambda dask_scheduler: dask_scheduler.local_directory
            )
    kept = [of_scheduler, *(worker["local_directory"] for worker in workers)]
    found = {where[worker]: who[worker] for worker in where}
    assert found == {str(folder): folder.name for folder in folders}
    assert len(kept) == 3
    assert [folder for folder in kept if writable_by_others(folder)] == []
    assert all(f"/equipoise/{DASK_FOLDER}/" in folder for folder in kept)


@needs_sshd
def test_the_host_that_does_not_answer_is_named(tmp_path: Path, ssh_port: int) -> None:
    (tmp_path / ".ssh" / "known_hosts").write_text("")
    file = hosts_file(tmp_path, f"127.0.0.1:{ssh_port}\n")
    with pytest.raises(
        UnusableInput, match="127.0.0.1 of .* cannot be reached through SSH"
    ) as raised:
        with ssh_cluster(file):
            pass
    assert raised.value.hint == f"try `ssh -p {ssh_port} 127.0.0.1`"


@needs_sshd
def test_host_without_equipoise_is_reported_with_its_python(tmp_path: Path, ssh_port: int) -> None:
    file = hosts_file(tmp_path, f"127.0.0.1:{ssh_port} python=/nowhere/python\n")
    with pytest.raises(
        UnusableInput, match="Equipoise does not run on 127.0.0.1 .*/nowhere/python"
    ):
        with ssh_cluster(file):
            pass
