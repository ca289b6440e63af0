"""The experiments of the ABI paper, run again and set beside its numbers.

:mod:`.reproductions` says what each model is fitted with, :mod:`.methods` how each method is asked,
:mod:`.experiment` what belongs to a cell, :mod:`.results` writes what the cells say, and
:mod:`.pictures` draws it. :mod:`abi.studies.engine` works the cells, keeps them and sets tables.
"""
