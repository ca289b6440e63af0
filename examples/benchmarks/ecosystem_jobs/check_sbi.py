import matplotlib.pyplot as plt
import torch
from ball import BUDGET, X_O, report
from ball_torch import PRIOR, throw
from sbi.analysis.plot import sbc_rank_plot
from sbi.diagnostics import check_sbc, check_tarp, run_sbc, run_tarp
from sbi.diagnostics.lc2st import LC2ST
from sbi.inference import NPE, simulate_for_sbi

sizes = {"simulation_batch_size": 1_000, "show_progress_bar": False}
theta, x = simulate_for_sbi(throw, PRIOR, BUDGET, **sizes)
inference = NPE(PRIOR, show_progress_bars=False)
inference.append_simulations(theta, x).train()
posterior = inference.build_posterior()

theta, x = simulate_for_sbi(throw, PRIOR, 300, **sizes)
ranks, dap = run_sbc(theta, x, posterior, num_posterior_samples=200, show_progress_bar=False)
sbc = check_sbc(ranks, theta, dap, num_posterior_samples=200)
sbc_rank_plot(ranks, num_posterior_samples=200)
plt.savefig("sbi_sbc.png")
ecp, alpha = run_tarp(theta, x, posterior, num_posterior_samples=200, show_progress_bar=False)
_, tarp_p = check_tarp(ecp, alpha)
draws = posterior.sample_batched((1,), x, show_progress_bars=False)[0]
lc2st = LC2ST(theta, x, draws, num_trials_null=50)
lc2st.train_under_null_hypothesis(verbosity=0)
lc2st.train_on_observed_data(verbosity=0)
at_x_o = posterior.sample((1_000,), x=torch.tensor(X_O), show_progress_bars=False)
report(
    p_values={
        "sbc": [round(float(p), 4) for p in sbc["ks_pvals"]],
        "tarp": round(float(tarp_p), 4),
        "lc2st": round(float(lc2st.p_value(at_x_o, torch.tensor(X_O)[None])), 4),
    },
    calls=BUDGET + 300,
)
