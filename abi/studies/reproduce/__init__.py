"""The experiments of the ABI paper, run again and set beside its numbers.

:mod:`.reproductions` says what each model is fitted with, :mod:`.methods` how each method is asked,
:mod:`.study` works cells, :mod:`.cells` keeps them, :mod:`.tables` and :mod:`.results` write what
they say, and :mod:`.pictures` draws it.
"""
