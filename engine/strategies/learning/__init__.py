"""Learned baselines: what they are shown and trained on, and the models, which a process of their own holds."""
