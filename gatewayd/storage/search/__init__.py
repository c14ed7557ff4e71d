"""Search in passages: full text, vectors, and the tables behind them."""
