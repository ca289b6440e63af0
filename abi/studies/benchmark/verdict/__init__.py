"""Is the verdict itself right? Its level, its power, and its word against exact posteriors.

Takes laws whose conditional is known and fits of models whose posterior is; gives cells and tables.
Imports the engine, the verdict and, for fits, the sampler.
"""
