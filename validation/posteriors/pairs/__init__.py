"""What a user hands in beside q: arrays or data frames of pairs, and observations x_o.

Takes whatever holds numbers, gives tensors, or one line that says what is wrong with them. Imports
``simulators`` and the seeds.
"""
