"""The offline model: rules that answer every agent's question from the same View as a language model."""
