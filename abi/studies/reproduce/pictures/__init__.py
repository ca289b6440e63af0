"""The pictures of a reproduction: draws beside the exact posterior, round by round, and data.

Takes kept cells and draws, gives matplotlib figures. Imports the study and :mod:`abi.report`.
"""
