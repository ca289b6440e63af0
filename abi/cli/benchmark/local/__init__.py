"""The experiments of the L-C2ST paper: is an estimate right at this observation?"""
