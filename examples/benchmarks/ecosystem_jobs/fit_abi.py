from pathlib import Path

import torch
from ball import BUDGET, X_O, report
from ball_torch import PRIOR, throw

import abi
from abi.report.plotting import plot_marginals

posterior = abi.fit(
    PRIOR, throw, torch.tensor(X_O), num_simulations=BUDGET, num_rounds=2, progress=False
)
draws = posterior.sample((2_000,))
plot_marginals(draws, ["speed", "angle"], Path("abi.png"), prior=PRIOR.sample((2_000,)))
report(draws, posterior.num_simulations)
