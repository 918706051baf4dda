"""Reads sessions of other agents and converts them into journal entries. Knows their file formats; no store, no model, no
screen."""
