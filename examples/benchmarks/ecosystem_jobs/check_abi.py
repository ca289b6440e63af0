from pathlib import Path

from ball import BUDGET, report
from ball_torch import PRIOR, throw
from sbi.inference import NPE, simulate_for_sbi

import validation

sizes = {"simulation_batch_size": 1_000, "show_progress_bar": False}
theta, x = simulate_for_sbi(throw, PRIOR, BUDGET, **sizes)
inference = NPE(PRIOR, show_progress_bars=False)
inference.append_simulations(theta, x).train()
posterior = inference.build_posterior()

theta, x = simulate_for_sbi(throw, PRIOR, 300, **sizes)
tests = validation.validate(posterior, theta, x)
tests.save_plots(Path("abi"))
report(
    p_values={result.method: round(result.p_value, 4) for result in tests.results},
    rejected=tests.rejected,
    calls=BUDGET + 300,
)
