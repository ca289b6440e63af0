"""zuko's spline flow and a learned simulator's curves as matrix products and compiled loops.

Takes a zuko flow, or a network, on the CPU, gives densities, gradients and draws several times as
fast. Gradients are written out. Imports nothing above it.
"""
