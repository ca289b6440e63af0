"""The Jansen-Rit neural mass model: simulator and compiled integrator."""
