"""Histories of other agents, read into journal entries. Knows files and their forms; no store, no model, no screen."""
