"""Models whose noise surrounds the solution of an ODE, and the compiled solver that they share."""
