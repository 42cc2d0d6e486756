"""Charts in cells: data, axes, candles, curves."""
