"""What a reader should know of each test: what it sees, what it cannot, where it comes from."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType


@dataclass(frozen=True)
class MethodNote:
    """What a reader of a p-value should know about the test behind it."""

    sees: str
    blind_to: str
    source: str


NOTES: Mapping[str, MethodNote] = MappingProxyType(
    {
        "panel": MethodNote(
            "a wrong mean, width, shape, dependence or mode of theta, even if only at some x",
            "structure too fine to show in a ball, in q's density or in smooth functions",
            "ours; Westfall & Young 1993; Liu & Xie 2020",
        ),
        "sbc": MethodNote(
            "marginals of theta that are shifted, too wide or too narrow on average over x",
            "wrong correlations; errors that cancel over x; a q that is just the prior",
            "Talts et al. 2018",
        ),
        "tarp": MethodNote(
            "joint coverage that is too high or too low on average over x",
            "errors that cancel over x; with random references, a q that is just the prior",
            "Lemos et al. 2023",
        ),
        "hpd": MethodNote(
            "a q that is too wide or too narrow on average over x",
            "errors that leave the truth's ranks by density uniform; a q that is just the prior",
            "Hyndman 1996; Deistler et al. 2022",
        ),
        "c2st": MethodNote(
            "any difference that a classifier learns from half of the pairs",
            "what the classifier misses; scores that differ on one side of its boundary only",
            "Lopez-Paz & Oquab 2017",
        ),
        "conformal_c2st": MethodNote(
            "any difference that shows in the ranks of a score, even of a weak one",
            "differences that leave the score's ranks uniform",
            "The surprising strength of weak classifiers, Section 2.2; Hu & Lei 2024",
        ),
        "conformal_multiple": MethodNote(
            "scores that are higher for p than for q on average",
            "scores that differ in spread, but not on average",
            "The surprising strength of weak classifiers, Section 2.4; Hu & Lei 2024",
        ),
        "discriminative_calibration": MethodNote(
            "any difference by which a classifier predicts better than chance, by its log score",
            "what the classifier misses",
            "Yao & Domke 2023",
        ),
        "score_rank": MethodNote(
            "any difference by which a score tells the truth from q's draws at the same x",
            "differences that leave the score's ranks uniform",
            "not from a paper",
        ),
        "colt_identity": MethodNote(
            "too much or too little mass in a ball around a point that depends on x",
            "errors on thin, curved sets, which balls average out",
            "Chen, Bansal & Scott 2025",
        ),
        "colt": MethodNote(
            "too much or too little mass in a ball of a learned metric, also on curved sets",
            "what its networks do not find (they need more pairs than CoLT ID)",
            "Chen, Bansal & Scott 2025",
        ),
        "lc2st": MethodNote(
            "a difference at the given x_o that a classifier learns from pairs at other x",
            "mass that is missing where q has no draws; what the classifier misses",
            "Linhart, Gramfort & Rodrigues 2023",
        ),
        "local_hpd": MethodNote(
            "a q that is too wide or too narrow at the given x_o",
            "errors that leave the truth's ranks by density uniform",
            "Zhao et al. 2021",
        ),
    }
)


def note_of(method: str) -> MethodNote | None:
    """The note of a test, or of the one it is a variant of (``lc2st_nf``); None of any other.

    >>> note_of("c2st_mse") is NOTES["c2st"], note_of("my_test")
    (True, None)
    """
    names = [name for name in NOTES if method == name or method.startswith(f"{name}_")]
    return NOTES[max(names, key=len)] if names else None
