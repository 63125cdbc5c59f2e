"""The attack on Equipoise that `make chaos` runs: faults, and what must hold after each of them.

- ``workplace``: the private folders of one case, and the user's own files and process in them;
- ``template``: what a case begins with, made once: ledgers, a repository, scripts, tables;
- ``commands``: the long commands that are attacked;
- ``processes``: starting a command, and finding every process that comes from it;
- ``invariants``: what must hold after every fault;
- ``kills``: one signal to one process at one moment;
- ``disks``: a full disk under the ledger, the temporary folder or the report;
- ``environments``: hostile surroundings of a command;
- ``another_user``, ``without_clone3``: programs that run a command in such surroundings;
- ``workers``: processes that run cases side by side;
- ``__main__``: runs all of them and adds up.
"""
