"""SLCP among distractors: which values tell of theta, what the others are, and the posterior."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from scipy import stats

import simulators
from simulators import SLCP, SLCPDistractors

NUM = 5_000


def test_eight_columns_are_slcp_and_the_others_do_not_move_with_theta() -> None:
    task, plain = SLCPDistractors(), SLCP()
    theta = task.true_theta.repeat(NUM, 1)
    x, other = task(theta, seed=3), task(-theta, seed=3)
    columns = task.informative
    assert len(set(columns.tolist())) == 8
    rest = [j for j in range(100) if j not in columns.tolist()]
    assert torch.equal(x[:, rest], other[:, rest])
    points, expected = x[:, columns].double(), plain(theta, seed=4).double()
    for j in range(8):
        assert stats.ks_2samp(points[:, j], expected[:, j]).pvalue > 1e-4


def test_the_order_is_the_one_of_the_benchmarks_own_observations() -> None:
    # Where its first observation with distractors repeats the eight values of the one without.
    assert SLCPDistractors().informative.tolist() == [22, 33, 23, 67, 42, 21, 16, 90]


def test_distractors_are_a_mixture_of_student_laws_of_two_degrees() -> None:
    from simulators.models.multimodal_gaussian.kernels import draw_student_mixture

    centres = np.array([[1_000.0, 0.0, 0.0], [-1_000.0, 0.0, 0.0]])
    roots = np.array([np.eye(3), [[0.01, 0.0, 0.0], [0.0, 2.0, 0.0], [0.0, 3.0, 4.0]]])
    out = np.empty((40_000, 3))
    draw_student_mixture(centres, roots, np.uint64(1), np.uint64(0), out)
    first = out[:, 0] > 0.0
    # A tail beyond a thousand holds a millionth of either law.
    assert stats.binomtest(int(first.sum()), len(out), 0.5).pvalue > 1e-4
    z = np.concatenate([out[first] - centres[0], (out[~first] - centres[1]) @
                        np.linalg.inv(roots[1]).T])  # fmt: skip
    assert stats.kstest(z.ravel()[::3], stats.t(2).cdf).pvalue > 1e-4
    # One chi-square a draw: the squared length over 3 is an F law of 3 and 2 degrees.
    assert stats.kstest((z**2).sum(axis=1) / 3.0, stats.f(3, 2).cdf).pvalue > 1e-4


def test_the_posterior_is_that_of_the_eight(monkeypatch: pytest.MonkeyPatch) -> None:
    task, plain = SLCPDistractors(), SLCP()
    x_o = task.observation
    points = x_o[task.informative]
    theta = simulators.sample_prior(task.prior, 10, 0).double().numpy()
    assert (task.log_likelihood(theta, x_o) == plain.log_likelihood(theta, points)).all()
    monkeypatch.setattr(SLCP, "reference_posterior", lambda _, seen, num, seed: (seen, num, seed))
    seen, *rest = task.reference_posterior(x_o[None], 7, seed=5)
    assert torch.equal(seen, points)
    assert rest == [7, 5]
