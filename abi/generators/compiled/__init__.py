"""zuko's spline flow as a few matrix products and compiled loops, with its gradient written out.

Takes a zuko flow on the CPU, gives its log densities, gradients and draws several times as fast.
Imports nothing above it.
"""
