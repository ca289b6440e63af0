"""Lynx and hares, 1900-1920: model and compiled Runge-Kutta steps."""
