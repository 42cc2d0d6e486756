"""Operator commands: own orders, approvals, cancellation, controls."""
