"""Power and level of the tests of ``validation``: the tables and figures of its papers.

An experiment is declared once (:mod:`.experiment`); cells, tables and pictures follow from it.
"""
