"""Whatever a user brings becomes one protocol here: draws ``theta ~ q(. | x)`` for many x.

Takes sbi, zuko, callables, arrays or ArviZ, gives a :class:`~validation.Posterior` and checked
joint pairs. Imports ``simulators`` and the seeds.
"""
