"""The machine of every study: cells found or worked, kept whole, and set in tables.

Takes a declaration (models, methods, seeds, budgets, scores) and a place to keep cells; gives the
cells that are finished (:mod:`.study`, :mod:`.cells`), Markdown with means and t intervals
(:mod:`.tables`) and panels (:mod:`.pictures`). Imports no study.
"""
