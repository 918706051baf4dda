"""The store: sessions, their journals, the archive and its index, import and export. The only place that knows SQLite."""
