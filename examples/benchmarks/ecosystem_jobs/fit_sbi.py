import matplotlib.pyplot as plt
import torch
from ball import BUDGET, X_O, report
from ball_torch import PRIOR, throw
from sbi.analysis import pairplot
from sbi.inference import NPE, simulate_for_sbi

theta, x = simulate_for_sbi(
    throw, PRIOR, BUDGET, simulation_batch_size=1_000, show_progress_bar=False
)
inference = NPE(PRIOR, show_progress_bars=False)
inference.append_simulations(theta, x).train()
posterior = inference.build_posterior()
draws = posterior.sample((2_000,), x=torch.tensor(X_O), show_progress_bars=False)
pairplot(draws, labels=["speed", "angle"])
plt.savefig("sbi.png")
report(draws)
