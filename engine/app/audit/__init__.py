"""The audit of a model's or strategy's decisions for look-ahead."""
