"""``abi report``: one page for fits and validations.

The page itself is :mod:`validation.page`: whether an answer may be trusted is that package's
question. What a fit has to show is put together here, in the command line, the one place that knows
both; ``abi`` and ``validation`` go on not knowing each other.
"""
