"""The first start: configuration, model, keys, symbols."""
