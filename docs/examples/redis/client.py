"""Send SETs to a Redis server by 50 clients, and report what redis-benchmark says."""

import csv
import subprocess
import sys

from equipoise.helpers.equipoise_metrics import report

socket, requests = sys.argv[1:]
words = ["redis-benchmark", "-s", socket, "-t", "set", "-r", "1000", "-n", requests, "--csv"]
done = subprocess.run(words, stdout=subprocess.PIPE, text=True, check=True)
(found,) = csv.DictReader(done.stdout.splitlines())
report("throughput_per_s", float(found["rps"]), better="higher")
report("latency_p99_s", float(found["p99_latency_ms"]) / 1e3, unit="s")
