"""Which model? Probabilities of several simulators given x_o, how far off they may be, a verdict.

Takes priors and simulators as a fit does, gives a frozen comparison and its file. Imports the rooms
of a fit below its posterior: problems, encoders, training, files, and the style of pictures.
"""
