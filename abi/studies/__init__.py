"""Studies that put a number to a claim, kept cell by cell, resumed, and set in tables and pictures.

``reproduce`` measures fits, ``benchmark`` measures tests; both run on ``engine``. Imports
everything below the command line.
"""
