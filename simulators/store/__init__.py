"""A folder that keeps every finished simulation, and takes an interrupted run up again.

Takes batches as they come, gives them back in order. Imports running and files.
"""
