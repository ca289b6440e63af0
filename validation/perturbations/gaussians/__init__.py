"""NPTBench: Gaussian posteriors that go wrong in six ways, and the blind prior."""
