"""Stores sessions: their journals, the archive and its index, import and export. The only package that uses
SQLite, except to read another agent's database."""
