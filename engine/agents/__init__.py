"""The agents: the view, the prompt and the answer of each, and the one function that asks a model."""
