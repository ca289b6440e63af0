"""The M/G/1 queue: simulator, and compiled loops with the Gibbs sampler of its posterior."""
