"""git_bayesect's own package on simulated commits, told pass or fail by the midpoint of both ends.

Run by the interpreter of an environment that has the package, and nothing of Equipoise:
``python package.py ARRAYS ANSWERS ENDS CERTAINTY``. ARRAYS is an .npz file with ``levels``, the log
costs of shape (campaigns, commits), and ``by_trial``, the noise of shape (campaigns, trials).
ANSWERS is written: ``named``, -1 where no commit reached the certainty, and ``trials``.
"""

from __future__ import annotations

import sys

import numpy as np
from git_bayesect import Bisector


def main() -> None:
    """Search each campaign until a commit is certain enough, or its trials are used up."""
    arrays, answers, ends, certainty = sys.argv[1], sys.argv[2], int(sys.argv[3]), sys.argv[4]
    read = np.load(arrays)
    searched = [
        _searched(levels, by_trial, ends, float(certainty))
        for levels, by_trial in zip(read["levels"], read["by_trial"], strict=True)
    ]
    named, trials = zip(*searched, strict=True)
    np.savez(answers, named=named, trials=trials)


def _searched(
    levels: np.ndarray, by_trial: np.ndarray, ends: int, certainty: float
) -> tuple[int, int]:
    noise = iter(by_trial.tolist())
    last = len(levels) - 1
    midpoint = np.mean([levels[commit] + next(noise) for commit in (0, last) for _ in range(ends)])
    bisector = Bisector(np.ones(last))  # From the newest commit to that after GOOD.
    for trial in range(2 * ends, len(by_trial)):
        if bisector.distribution.max() >= certainty:
            return last - int(bisector.distribution.argmax()), trial
        place = bisector.select()
        bisector.record(place, bool(levels[last - place] + next(noise) > midpoint))
    return -1, len(by_trial)


if __name__ == "__main__":
    main()
