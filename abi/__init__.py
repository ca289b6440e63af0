"""Which parameters explain this observation? Adaptive Bayesian inference (Lu & Wong 2025)."""
