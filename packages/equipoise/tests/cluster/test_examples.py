"""The files of docs/examples/fleet are ones that their programs take."""

from __future__ import annotations

import os
import runpy
import shlex
import shutil
import subprocess
import sys
import types
from pathlib import Path
from typing import Any

import pytest
import yaml

from equipoise.cluster import worker

FOLDER = Path(__file__).resolve().parents[4] / "docs" / "examples" / "fleet"
UNIT = FOLDER / "equipoise-worker.service"
MODULE = "equipoise.cluster.worker"


def options_of_supervisor(words: list[str]) -> Any:
    return worker.parse_options(words[words.index(MODULE) + 1 :])


def test_the_service_starts_the_supervisor() -> None:
    (line,) = (line for line in UNIT.read_text().splitlines() if line.startswith("ExecStart="))
    options = options_of_supervisor(shlex.split(line.removeprefix("ExecStart=")))
    assert options.scheduler == "tcp://10.0.0.1:8786"


def test_slurm_hosts_keep_files_of_dask_out_of_the_shared_folder(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    pytest.importorskip("dask")
    given: dict[str, Any] = {}
    jobqueue = types.SimpleNamespace(SLURMCluster=lambda **options: given.update(options))
    monkeypatch.setitem(sys.modules, "dask_jobqueue", jobqueue)
    example = runpy.run_path(str(FOLDER / "slurm.py"))
    example["make_cluster"]()
    assert Path(given["local_directory"]).is_relative_to(Path.home())
    assert example["PRIVATE"] == Path(given["local_directory"])


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give a folder away")
def test_a_job_of_slurm_ends_where_another_user_made_the_folder_of_the_ledger(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(
        sys.modules, "dask_jobqueue", types.SimpleNamespace(SLURMCluster=lambda **options: options)
    )
    lines = runpy.run_path(str(FOLDER / "slurm.py"))["make_cluster"]()["job_script_prologue"]
    script = "\n".join(lines[1:]).replace("/var/tmp", str(tmp_path))
    made = tmp_path / "bench"
    run = ["sh", "-c", script]
    environment = {"PATH": os.environ["PATH"], "USER": "bench", "SLURMD_NODENAME": "node1"}
    assert subprocess.run(run, env=environment, check=False).returncode == 0
    assert made.stat().st_mode & 0o777 == 0o700
    os.chown(made, 65_534, -1)
    assert subprocess.run(run, env=environment, check=False).returncode == 1


def test_systemd_takes_the_service(tmp_path: Path) -> None:
    verifier = shutil.which("systemd-analyze")
    if verifier is None:
        pytest.skip("misses systemd-analyze: apt-get install systemd")

    def complaints(text: str) -> list[str]:
        unit = tmp_path / UNIT.name
        unit.write_text(text)
        words = [str(verifier), "verify", str(unit)]
        done = subprocess.run(words, capture_output=True, text=True, check=False)
        return [line for line in done.stderr.splitlines() if UNIT.name in line]

    here = UNIT.read_text().replace("/opt/equipoise/bin/python", sys.executable)
    if not complaints(here.replace("KillMode=process", "KillMode=nonsense")):
        pytest.skip("systemd-analyze verifies nothing here")
    assert complaints(here) == []


def test_each_kubernetes_pod_is_supervised_on_a_separate_node() -> None:
    cluster = yaml.safe_load((FOLDER / "kubernetes.yaml").read_text())
    pod = cluster["spec"]["worker"]["spec"]
    (container,) = pod["containers"]
    options = options_of_supervisor(container["args"])
    assert options.scheduler == "$(DASK_SCHEDULER_ADDRESS)"
    (apart,) = pod["affinity"]["podAntiAffinity"]["requiredDuringSchedulingIgnoredDuringExecution"]
    name = cluster["metadata"]["name"]
    assert apart["labelSelector"]["matchLabels"]["dask.org/cluster-name"] == name
    (mount,) = container["volumeMounts"]
    state = {variable["name"]: variable.get("value") for variable in container["env"]}[
        "XDG_STATE_HOME"
    ]
    assert Path(state).is_relative_to(mount["mountPath"])
