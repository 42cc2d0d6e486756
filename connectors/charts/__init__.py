"""Rendering of charts as images for models with vision, reports and people."""
