"""The L-C2ST paper: local tests of trained flows beside an oracle that knows the exact posterior.

Takes tasks and budgets, gives agreement, gains and claims. Imports ``validation`` and
``simulators``.
"""
