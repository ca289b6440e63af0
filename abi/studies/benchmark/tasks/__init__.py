"""The public benchmark by the defaults of `abi.fit`: C2ST as its authors define it, and our scores.

Takes the ten tasks with their exact posteriors; gives cells, and one table beside what others have
published. Imports the engine, the metrics, the sampler and one baseline.
"""
