"""One file an experiment: which failures, at which strengths, seen by which tests.

Takes ``quick`` or not, gives an :class:`~abi.studies.benchmark.experiment.Experiment`.
"""
