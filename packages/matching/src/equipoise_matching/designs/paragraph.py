"""Write the methods paragraph of a paper from a design, with the citations of its method."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from equipoise_matching.designs.balance import LARGE_DIFFERENCE, DesignBalance
from equipoise_matching.designs.covariate_balance import focal_arm
from equipoise_matching.shared import html
from equipoise_matching.shared.errors import UnusableInput
from equipoise_matching.shared.numbers import joined

if TYPE_CHECKING:
    from equipoise_matching.designs.design import Design

MAX_NAMED_COVARIATES = 15
"""Largest number of covariates that a paragraph names; of more, it has the number."""
POPULATIONS = {
    "ATT": "the average effect on the treated (ATT)",
    "ATC": "the average effect on the controls (ATC)",
    "ATE": "the average effect on all rows (ATE)",
    "ATO": "the average effect on the rows in the overlap of the arms (ATO)",
}
"""The effect of each estimand, in a sentence."""
TECHNICAL_DETAILS = frozenset(
    {"Arcs", "Certified distance from the minimum", "Gap", "Iterations", "Lower bound", "Proof"}
    | {"Rounds", "Upper bound", "Largest difference of means (standard deviations)"}
    | {"Largest remaining imbalance (standard deviations)"}
)
"""Names of details about the computation, which a paper does not report."""
DENOMINATOR_TEXTS = {
    "treated": "of the treated rows before the design",
    "controls": "of the controls before the design",
    "pooled": "pooled over the arms before the design",
    "all": "of all rows before the design",
}

AUSTIN = (
    "Austin, P. C. (2009). Balance diagnostics for comparing the distribution of baseline "
    "covariates between treatment groups in propensity-score matched samples. Statistics in "
    "Medicine 28(25), 3083-3107."
)
KISH = "Kish, L. (1965). Survey Sampling. Wiley, New York."


@dataclass(frozen=True, slots=True)
class MethodsParagraph:
    """The paragraph of methods, and the works that it cites.

    ``text`` is the paragraph. ``citations`` has a line for each work, in alphabetical order.
    """

    text: str
    citations: tuple[str, ...]

    def __str__(self) -> str:
        """Return the paragraph, and the references below it."""
        return "\n".join([self.text, "", "References", *self.citations])

    def _repr_html_(self) -> str:
        return f"<div><p>{html.text(self.text)}</p>{html.bullets(self.citations)}</div>"


@dataclass(frozen=True, slots=True)
class MethodText:
    """Text of a method, which continues "we", and the works that describe the method."""

    sentence: str
    citations: tuple[str, ...]
    population: str = ""
    """The effect, if the method and not the estimand decides whose effect it is."""


ROSENBAUM_RUBIN_1983 = (
    "Rosenbaum, P. R. and Rubin, D. B. (1983). The central role of the propensity score in "
    "observational studies for causal effects. Biometrika 70(1), 41-55."
)
HANSEN_KLOPFER = (
    "Hansen, B. B. and Klopfer, S. O. (2006). Optimal full matching and related designs via "
    "network flows. Journal of Computational and Graphical Statistics 15(3), 609-627."
)
METHODS = {
    "optimal_match": MethodText(
        "matched treated rows with controls so that the total distance of all pairs is the "
        "smallest possible (Rosenbaum 1989; Hansen and Klopfer 2006)",
        (
            "Rosenbaum, P. R. (1989). Optimal matching for observational studies. Journal of the "
            "American Statistical Association 84(408), 1024-1032.",
            HANSEN_KLOPFER,
        ),
    ),
    "full_match": MethodText(
        "divided the rows into matched sets of one treated row with controls, or one control with "
        "treated rows, so that the total distance is the smallest possible (full matching; Hansen "
        "2004; Hansen and Klopfer 2006)",
        (
            "Hansen, B. B. (2004). Full matching in an observational study of coaching for the "
            "SAT. Journal of the American Statistical Association 99(467), 609-618.",
            HANSEN_KLOPFER,
        ),
    ),
    "cem": MethodText(
        "coarsened the covariates and kept the strata of equal coarsened values that have rows of "
        "every arm (coarsened exact matching; Iacus, King and Porro 2012)",
        (
            "Iacus, S. M., King, G. and Porro, G. (2012). Causal inference without balance "
            "checking: coarsened exact matching. Political Analysis 20(1), 1-24.",
        ),
    ),
    "subclassify": MethodText(
        "divided the rows into subclasses of similar propensity scores (Rosenbaum and Rubin 1984)",
        (
            "Rosenbaum, P. R. and Rubin, D. B. (1984). Reducing bias in observational studies "
            "using subclassification on the propensity score. Journal of the American "
            "Statistical Association 79(387), 516-524.",
        ),
    ),
    "cardinality_match": MethodText(
        "chose the largest matched sample whose covariates are balanced within given tolerances "
        "(cardinality matching; Zubizarreta, Paredes and Rosenbaum 2014)",
        (
            "Zubizarreta, J. R., Paredes, R. D. and Rosenbaum, P. R. (2014). Matching for "
            "balance, pairing for heterogeneity in an observational study of the effectiveness "
            "of for-profit and not-for-profit high schools in Chile. The Annals of Applied "
            "Statistics 8(1), 204-231.",
        ),
    ),
    "profile_match": MethodText(
        "chose the largest sample of each arm whose covariates are balanced around a target "
        "profile (profile matching; Cohn and Zubizarreta 2022)",
        (
            "Cohn, E. R. and Zubizarreta, J. R. (2022). Profile matching for the generalization "
            "and personalization of causal inferences. Epidemiology 33(5), 678-688.",
        ),
        "the average effect in the target population",
    ),
    "quick_match": MethodText(
        "divided the rows into small groups with rows of every arm, whose largest distance is at "
        "most four times the smallest possible (generalized full matching; Sävje, Higgins and "
        "Sekhon 2021)",
        (
            "Sävje, F., Higgins, M. J. and Sekhon, J. S. (2021). Generalized full matching. "
            "Political Analysis 29(4), 423-447.",
        ),
    ),
    "nearest_match": MethodText(
        "matched each row with the nearest rows of the other arm by a score, one row after another "
        "(Rubin 1973; Rosenbaum and Rubin 1985)",
        (
            "Rubin, D. B. (1973). Matching to remove bias in observational studies. Biometrics "
            "29(1), 159-183.",
            "Rosenbaum, P. R. and Rubin, D. B. (1985). Constructing a control group using "
            "multivariate matched sampling methods that incorporate the propensity score. The "
            "American Statistician 39(1), 33-38.",
        ),
    ),
    "match": MethodText(
        "matched each row with its nearest rows of the other arm in the covariates (Abadie and "
        "Imbens 2006; Sekhon 2011)",
        (
            "Abadie, A. and Imbens, G. W. (2006). Large sample properties of matching estimators "
            "for average treatment effects. Econometrica 74(1), 235-267.",
            "Sekhon, J. S. (2011). Multivariate and propensity score matching software with "
            "automated balance optimization: the Matching package for R. Journal of Statistical "
            "Software 42(7), 1-52.",
        ),
    ),
    "inverse_probability_weights": MethodText(
        "weighted the rows by the inverse of the estimated probability of their arm (Rosenbaum and "
        "Rubin 1983; Robins, Hernán and Brumback 2000)",
        (
            ROSENBAUM_RUBIN_1983,
            "Robins, J. M., Hernán, M. A. and Brumback, B. (2000). Marginal structural models and "
            "causal inference in epidemiology. Epidemiology 11(5), 550-560.",
        ),
    ),
    "overlap_weights": MethodText(
        "weighted each row by the estimated probability of the other arm (overlap weights; Li, "
        "Morgan and Zaslavsky 2018)",
        (
            "Li, F., Morgan, K. L. and Zaslavsky, A. M. (2018). Balancing covariates via "
            "propensity score weighting. Journal of the American Statistical Association "
            "113(521), 390-400.",
        ),
    ),
    "entropy_balance": MethodText(
        "weighted the rows so that moments of the covariates agree exactly and the weights differ "
        "as little as possible from equal ones (entropy balancing; Hainmueller 2012)",
        (
            "Hainmueller, J. (2012). Entropy balancing for causal effects: a multivariate "
            "reweighting method to produce balanced samples in observational studies. Political "
            "Analysis 20(1), 25-46.",
        ),
    ),
    "covariate_balancing_score": MethodText(
        "weighted the rows by a propensity score whose parameters balance the means of the "
        "covariates (Imai and Ratkovic 2014)",
        (
            "Imai, K. and Ratkovic, M. (2014). Covariate balancing propensity score. Journal of "
            "the Royal Statistical Society, Series B 76(1), 243-263.",
        ),
    ),
    "energy_balance": MethodText(
        "weighted the rows so that the energy distance between the covariates of the arms is the "
        "smallest possible (energy balancing; Huling and Mak 2024)",
        (
            "Huling, J. D. and Mak, S. (2024). Energy balancing of covariate distributions. "
            "Journal of Causal Inference 12(1), 20220029.",
        ),
    ),
}
"""Text and citations of each method, by the name of its function."""


def paragraph_of(design: Design, balance: DesignBalance, effect: Any = None) -> MethodsParagraph:
    """Return the methods paragraph of a design with its balance, and of its effect, if any.

    Raise `UnusableInput` if ``effect`` has no sentence for a paragraph.
    """
    sentences = [*_design_sentences(design), *_balance_sentences(balance)]
    if effect is not None:
        if not callable(getattr(effect, "methods_sentence", None)):
            raise UnusableInput(
                f"effect is of type {type(effect).__name__}, which is not an effect",
                hint="give the result of design.effect(y)",
            )
        sentences.append(str(effect.methods_sentence()))
    sentences.append("Computations were made with the Python package equipoise-matching.")
    method = METHODS.get(design.method)
    citations = {*(method.citations if method else ()), AUSTIN, KISH}
    return MethodsParagraph(" ".join(sentences), tuple(sorted(citations)))


def _design_sentences(design: Design) -> Iterator[str]:
    """Yield sentences about the method, the estimand, the covariates, the settings and the rows."""
    method = METHODS.get(design.method)
    population = POPULATIONS.get(design.estimand, f"the effect {design.estimand}")
    if method is not None and method.population:
        population = method.population
    action = method.sentence if method else f"chose and weighted the rows by {design.method}"
    yield f"To estimate {population}, we {action}."
    units, names = design.units, design.units.names
    covariates = joined(names)
    if len(names) > MAX_NAMED_COVARIATES:
        covariates = f"{len(names)} covariates"
    yield f"The design was made from {covariates}, without the outcome."
    details = "; ".join(
        f"{name[:1].lower()}{name[1:]}: {f'{value:.4g}' if isinstance(value, float) else value}"
        for name, value in design.details.items()
        # A name such as "Treated, proof" is about one arm.
        if name.rpartition(", ")[2].capitalize() not in TECHNICAL_DETAILS
    )
    if details:
        yield f"Settings and measures of the design are: {details}."
    parts = []
    for index, name in enumerate(units.arm_names):
        weights = design.weights[units.arm == index]
        label = name.lower() if units.arms == (0, 1) else f"rows of arm {name}"
        parts.append(
            f"{int((weights > 0).sum()):,} of {len(weights):,} {label} (effective number "
            f"{design.effective_sizes[index]:,.1f})"
        )
    yield f"The design uses {joined(parts)} (Kish 1965)."
    target_arm = {"ATT": focal_arm(design), "ATC": 0}.get(design.estimand)
    is_left_out = design.weights == 0.0
    if target_arm is not None:
        is_left_out = is_left_out & (units.arm == target_arm)
    if population in POPULATIONS.values() and is_left_out.any():
        yield "The effect is that on the rows in use, because others are left out."


def _balance_sentences(balance: DesignBalance) -> Iterator[str]:
    """Yield sentences about the balance before and after."""
    before, after = balance.overall("before"), balance.overall("after")
    raw = ""
    if balance.binary == "raw" and any(variable.is_binary for variable in balance.variables):
        raw = ", and raw for binary covariates"
    yield (
        "Balance was judged by differences of weighted means, in standard deviations "
        f"{DENOMINATOR_TEXTS[balance.standardize]}{raw}, and by Kolmogorov-Smirnov statistics "
        "(Austin 2009)."
    )
    if after.unknown:
        yield f"{after.unknown} of {len(balance.variables)} differences are unknown."
    if after.unknown == len(balance.variables):
        return
    yield (
        f"The largest difference fell from {before.largest_difference:.2f} ({before.worst}) to "
        f"{after.largest_difference:.2f} ({after.worst}), the mean difference from "
        f"{before.mean_difference:.2f} to {after.mean_difference:.2f}, and the largest "
        f"Kolmogorov-Smirnov statistic from {before.largest_ks:.2f} to {after.largest_ks:.2f}."
        if after.largest_difference <= before.largest_difference
        else f"The largest difference is {after.largest_difference:.2f} ({after.worst}), which is "
        f"not smaller than before, {before.largest_difference:.2f} ({before.worst})."
    )
    unbalanced = balance.unbalanced()
    if unbalanced:
        yield f"Differences above {LARGE_DIFFERENCE} remain in {joined(unbalanced)}."
    else:
        yield f"No {'known ' if after.unknown else ''}difference exceeds {LARGE_DIFFERENCE}."
