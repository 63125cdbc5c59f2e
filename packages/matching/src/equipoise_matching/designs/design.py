"""The result of every design: which rows are compared with which, and their weights."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal, Unpack

import numpy as np
from numpy.typing import ArrayLike

from equipoise_matching.designs.units import DesignUnits, effective_size
from equipoise_matching.effects.sample import DesignRows, EffectOptions
from equipoise_matching.effects.weight_model import WeightModel
from equipoise_matching.matching.frames import columns_of
from equipoise_matching.matching.match import aligned
from equipoise_matching.matching.options import Estimand
from equipoise_matching.matching.units import Floats, Indices
from equipoise_matching.shared import html
from equipoise_matching.shared.errors import UnusableInput
from equipoise_matching.shared.extras import require

if TYPE_CHECKING:
    from pandas import DataFrame

    from equipoise_matching.designs.balance import DesignBalance
    from equipoise_matching.designs.covariate_balance import BinaryDifference, Denominator
    from equipoise_matching.designs.paragraph import MethodsParagraph
    from equipoise_matching.effects.result import EffectEstimate, EffectEstimates
    from equipoise_matching.effects.robustness import RobustnessValue
    from equipoise_matching.effects.sensitivity import RosenbaumBounds

LEFT_OUT = -1
"""Stratum of a row that a design leaves out."""
DesignEstimand = Estimand | Literal["ATO"]
"""Effect of a design; overlap weights have the effect in the overlap (ATO)."""


@dataclass(frozen=True, slots=True, eq=False)
class Design:
    """Rows that are compared with each other, and the weight of each row.

    Parameters
    ----------
    method
        Name of the function that made the design, such as ``optimal_match``.
    estimand
        The effect on the treated (ATT), on the controls (ATC), on all (ATE) or on the rows in the
        overlap of the arms (ATO).
    units
        The treatment and the covariates of the rows.
    weights
        Shape (n,), 0 for rows that are left out. The mean of an outcome in an arm is its weighted
        mean over the rows of the arm; only the proportions within an arm count.
    strata
        Shape (n,), the stratum of each row, from 0; ``LEFT_OUT`` for a row that is left out.
        ``None`` for a design that weights rows without strata.
    matched_pairs
        Shape (pairs, 2), a treated row and a control, if a control may be in several pairs. A
        design with strata computes its pairs from them.
    details
        Further facts about the design, such as its total distance: name and value.
    weight_model
        How the weights depend on a fitted model, so that errors count its uncertainty; or ``None``.
    """

    method: str
    estimand: DesignEstimand
    units: DesignUnits = field(repr=False)
    weights: Floats = field(repr=False)
    strata: Indices | None = field(default=None, repr=False)
    matched_pairs: Indices | None = field(default=None, repr=False)
    details: Mapping[str, Any] = field(default_factory=dict)
    weight_model: WeightModel | None = field(default=None, repr=False)

    def pairs(self) -> Indices:
        """Return a treated row and a control for each pair, shape (pairs, 2); rows count from 0.

        A stratum of one treated row and three controls has three pairs. Raise `UnusableInput` for
        a design without pairs: a stratum has several rows of both arms, or there are no strata.
        """
        if self.matched_pairs is not None:
            return self.matched_pairs
        if self.strata is None:
            raise UnusableInput(
                f"{self.method} gives weights, not pairs", hint="use .weights instead of .pairs()"
            )
        treated = self.units.treated
        count = int(self.strata.max(initial=LEFT_OUT)) + 1
        is_matched = self.strata != LEFT_OUT
        sizes = [
            np.bincount(self.strata[is_matched & is_in_arm], minlength=count)
            for is_in_arm in (treated, ~treated)
        ]
        if ((sizes[0] > 1) & (sizes[1] > 1)).any():
            raise UnusableInput(
                f"{self.method} gives strata with several rows of both arms, not pairs",
                hint="use .strata instead of .pairs()",
            )
        rows = []
        for is_in_arm, sizes_of_others in ((treated, sizes[1]), (~treated, sizes[0])):
            arm_rows = np.flatnonzero(is_matched & is_in_arm)
            arm_rows = arm_rows[np.argsort(self.strata[arm_rows], kind="stable")]
            # The only row of an arm is in as many pairs as the stratum has rows of the other arm.
            rows.append(np.repeat(arm_rows, sizes_of_others[self.strata[arm_rows]]))
        return np.column_stack(rows).astype(np.int64)

    @property
    def effective_sizes(self) -> tuple[float, ...]:
        """Effective number of rows of each arm, controls first: (Σw)² / Σw² (Kish 1965)."""
        return tuple(
            effective_size(self.weights[self.units.arm == arm])
            for arm in range(len(self.units.arms))
        )

    def balance(
        self,
        *,
        covariates: Any = None,
        standardize: Denominator | None = None,
        binary: BinaryDifference = "raw",
        squares: bool = False,
        interactions: bool = False,
        cluster: Any = None,
    ) -> DesignBalance:
        """Compare the arms in every covariate, before and after the design.

        Raise `UnusableInput` if an option or the covariates cannot be used, or an arm is empty.

        Parameters
        ----------
        covariates
            A table of the same rows; by default the covariates of the design.
        standardize
            Rows whose standard deviation before matching divides a difference of means:
            ``treated`` (the default for ATT), ``controls`` (ATC), ``pooled`` (the root of the mean
            of the arms' variances, the default for ATE) or ``all``.
        binary
            Whether the difference of a binary covariate is ``raw`` or ``standardized``.
        squares, interactions
            Whether to compare squares of the covariates too, and products of two.
        cluster
            Shape (n,), the cluster of each row, to compare the arms within each cluster.
        """
        from equipoise_matching.designs.balance import balance_of_designs
        from equipoise_matching.designs.covariate_balance import BalanceOptions

        options = BalanceOptions(standardize, binary, squares, interactions)
        return balance_of_designs([self], covariates=[covariates], cluster=cluster, options=options)

    def methods_paragraph(self, effect: Any = None, *, covariates: Any = None) -> MethodsParagraph:
        """Write the paragraph of methods for a paper, with its citations.

        ``effect`` is the result of ``effect``, whose error the paragraph names. ``covariates`` is
        a table of the same rows to report the balance of, by default that of the design.
        """
        from equipoise_matching.designs.paragraph import paragraph_of

        return paragraph_of(self, self.balance(covariates=covariates), effect)

    def matched_frame(self, data: Any = None) -> DataFrame:
        """Return the rows that are used, with ``weight``, and ``stratum`` if there are strata.

        The columns are those of ``data``, a table of the same rows; by default the treatment and
        the covariates of the design. The index is the row number in the input, from 0 (pandas).
        """
        pandas = require("pandas", "frames")
        if data is None:
            columns: dict[str, Any] = {
                "treat": np.asarray(self.units.arms)[self.units.arm],
                **dict(zip(self.units.names, self.units.matrix.T, strict=True)),
            }
        else:
            found = columns_of(data)
            if found is None:
                raise UnusableInput(
                    f"data is of type {type(data).__name__}", hint="give a data frame"
                )
            columns = dict(found)
        if len(next(iter(columns.values()))) != len(self.weights):
            raise UnusableInput(
                f"data has {len(next(iter(columns.values())))} rows and the design "
                f"{len(self.weights)}",
                hint="give the table from which the design was made",
            )
        columns["weight"] = self.weights
        if self.strata is not None:
            columns["stratum"] = self.strata
        frame: DataFrame = pandas.DataFrame(columns)
        return frame[self.weights > 0]

    def design_rows(self) -> DesignRows:
        """Return the rows of the design as plain arrays."""
        return DesignRows(
            self.units.arm,
            self.units.arms,
            self.weights,
            self.estimand,
            self.strata,
            self.units.names,
            self.units.matrix,
            self.method,
            self.weight_model,
            self.details.get("Focal arm"),
        )

    def effect(self, y: ArrayLike, **options: Unpack[EffectOptions]) -> EffectEstimate:
        """Return the effect on the outcome y (n,) in a design of two arms, by g-computation.

        The options are those of `effects_of`: ``covariates``, ``scale``, ``model``, ``event``,
        ``at``, ``variance``, ``error``, ``clusters``, ``redesign``, ``replications``, ``seed``,
        ``confidence``. Raise `UnusableInput` if the outcome or an option cannot be used.
        """
        from equipoise_matching.effects.estimate import effect_of

        return effect_of(y, self.design_rows(), options)

    def effects(self, y: ArrayLike, **options: Unpack[EffectOptions]) -> EffectEstimates:
        """Return the effect for each pair of arms, with the options of `effect` and ``target``."""
        from equipoise_matching.effects.estimate import effects_of

        return effects_of(y, self.design_rows(), options)

    def subgroup_effects(
        self, y: ArrayLike, by: Any, **options: Unpack[EffectOptions]
    ) -> EffectEstimates:
        """Return the effect in each subgroup ``by`` (n,), under a false-discovery rate.

        The options are those of `effect`. The adjusted p-values are those of Benjamini and
        Hochberg (1995).
        """
        from equipoise_matching.effects.estimate import subgroup_effects_of

        return subgroup_effects_of(y, by, self.design_rows(), options)

    def rosenbaum_bounds(self, y: ArrayLike, **options: Any) -> RosenbaumBounds:
        """Return Rosenbaum's bounds for pairs and matched sets (see `rosenbaum_bounds`)."""
        from equipoise_matching.effects.sensitivity import rosenbaum_bounds

        if self.strata is None:
            raise UnusableInput(
                f"{self.method} has no strata, so there are no bounds of Rosenbaum",
                hint="use .robustness_value(y), or e_value(design.effect(y))",
            )
        return rosenbaum_bounds(y, self.units.treated.astype(int), self.strata, **options)

    def robustness_value(self, y: ArrayLike, **options: Any) -> RobustnessValue:
        """Return the robustness value of the weighted regression (see `robustness_value`)."""
        from equipoise_matching.effects.robustness import robustness_value

        covariates = dict(zip(self.units.names, self.units.matrix.T, strict=True))
        treated = self.units.treated.astype(int)
        return robustness_value(y, treated, covariates, weights=self.weights, **options)

    def facts(self) -> list[tuple[str, str]]:
        """Return names and values: the method, the numbers of rows and the details."""
        facts = [("Design", self.method), ("Estimand", self.estimand)]
        for index, label in enumerate(self.units.arm_names):
            weights = self.weights[self.units.arm == index]
            text = f"{int((weights > 0).sum())} of {len(weights)}"
            facts.append((label, f"{text} (effective: {self.effective_sizes[index]:.4g})"))
        if self.strata is not None:
            facts.append(("Strata", f"{len(np.unique(self.strata[self.strata != LEFT_OUT]))}"))
        for name, value in self.details.items():
            facts.append((name, f"{value:.6g}" if isinstance(value, float) else str(value)))
        return facts

    def summary(self) -> str:
        """Return the facts as text, one per line."""
        return aligned(self.facts())

    def __str__(self) -> str:
        """Return the summary."""
        return self.summary()

    def _repr_html_(self) -> str:
        return html.facts(self.facts())
