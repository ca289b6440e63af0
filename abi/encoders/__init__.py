"""What of x the networks see: fixed and learned maps from x (n, p) to features (n, k).

Takes simulated x and their layout, gives an encoder. Imports ``simulators`` alone.
"""
