"""The encoder *both_orders*: a network of items in the order given and sorted, as compiled loops.

Takes x and its layout, gives features and, of its weights, gradients. Imports nothing above it.
"""
