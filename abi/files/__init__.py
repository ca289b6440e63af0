"""Everything of a fit that touches the disk or leaves it in another form: posteriors, runs, ArviZ.

Takes and gives the records of the other rooms, in safetensors and JSON; reads the numbers in files
of a user's. Imports rounds and what lies below; the posterior hands itself in and is not imported.
"""
