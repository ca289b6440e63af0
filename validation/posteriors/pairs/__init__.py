"""What a user hands in beside q: arrays or data frames of pairs, observations x_o, stored draws.

Takes whatever holds numbers, gives tensors, or one line that says what is wrong with them, as where
rows or draws that tests take for independent are not. Imports ``simulators`` and the seeds.
"""
