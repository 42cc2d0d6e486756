"""A market that has already happened: the simulated broker, fill models and price bases."""
