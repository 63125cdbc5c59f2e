"""The verification: whether a change is really faster, and its output still right.

terms        additions of a verification to a plan and to a result document
objections   reasons not to trust a speed-up: changed benchmarks, new clocks, results that are kept
observing    untimed runs before the campaign: is the output repeatable, and which files are used
outputs      the first difference between two outputs
blocks       the input and the comparison of outputs of each block, and when the campaign stops
analysis     the answer, computed from the recorded blocks
report       the question, the answer and its limits
certificate  the file of a certified speed-up: written, checked, read
plan         the plan of a verification
measuring    the untimed runs, and then the campaign
command      ``equipoise verify``, and its ``--replay``
"""

from __future__ import annotations

from equipoise.model.kinds import Command, Kind

KIND = Kind(
    "verify",
    terms="equipoise.kinds.verify.terms:VerifyPlan",
    document="equipoise.kinds.verify.terms:VerifyDocument",
    campaign="equipoise.kinds.verify.blocks:VerifyCampaign",
    analysis="equipoise.kinds.verify.analysis:VerifyAnalysis",
    report="equipoise.kinds.verify.report:VerifyReport",
    commands={
        "verify": Command(
            "equipoise.kinds.verify.command",
            "Is a change really faster, and still right? With a certificate.",
            group="Measure",
            after="gate",
        )
    },
)
