"""Predators and prey as a jump process: simulator and compiled Gillespie loop."""
