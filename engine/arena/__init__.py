"""A closed market made of agents: order books, double-entry accounts, and the traders that sit at them.

Source: Agent Trading Arena §3 [R1, R2].
"""
