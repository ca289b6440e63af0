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
            "marginals, dependence, spread and modes of theta, also where they are wrong for "
            "some x",
            "fine structure that neither a ball, a density nor smooth features show",
            "ours; Westfall & Young 1993; Liu & Xie 2020",
        ),
        "sbc": MethodNote(
            "marginals of theta that are biased, too wide or too narrow on average over x",
            "dependence between parameters; errors that cancel over x; the prior in q's place",
            "Talts et al. 2018",
        ),
        "tarp": MethodNote(
            "joint over- or under-coverage on average over x",
            "errors that cancel over x; the prior in q's place, with random references",
            "Lemos et al. 2023",
        ),
        "hpd": MethodNote(
            "a wrong spread of q on average over x",
            "a shift that keeps the densities' ranks; the prior in q's place",
            "Hyndman 1996; Deistler et al. 2022",
        ),
        "c2st": MethodNote(
            "any difference the classifier learns from half of the pairs",
            "what the classifier misses; a score that only ranks well",
            "Lopez-Paz & Oquab 2017",
        ),
        "conformal_c2st": MethodNote(
            "any difference by which a score ranks p and q differently, even a weak one",
            "what the score cannot rank",
            "The surprising strength of weak classifiers, Section 2.2; Hu & Lei 2024",
        ),
        "conformal_multiple": MethodNote(
            "scores of p that are larger than q's on average",
            "scores that differ in spread but not on average",
            "The surprising strength of weak classifiers, Section 2.4; Hu & Lei 2024",
        ),
        "discriminative_calibration": MethodNote(
            "any difference the classifier can turn into log predictive density",
            "what the classifier misses",
            "Yao & Domke 2023",
        ),
        "score_rank": MethodNote(
            "any difference by which a score ranks truth among q's draws at the same x",
            "what the score cannot rank",
            "not from a paper",
        ),
        "colt_identity": MethodNote(
            "a difference of mass in a ball around a point that depends on x",
            "differences on thin curved sets, that balls average out",
            "Chen, Bansal & Scott 2025",
        ),
        "colt": MethodNote(
            "a difference of mass in a ball of a learned metric, also on curved sets",
            "what its networks do not find; it needs more pairs than the identity form",
            "Chen, Bansal & Scott 2025",
        ),
        "lc2st": MethodNote(
            "a difference at the given x_o, as far as the classifier generalises to it",
            "regions where q has no draws; what the classifier misses",
            "Linhart, Gramfort & Rodrigues 2023",
        ),
        "local_hpd": MethodNote(
            "a wrong spread of q at the given x_o",
            "a shift that keeps the densities' ranks",
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
