"""Nouns of a trading desk as frozen values; standard library only."""
