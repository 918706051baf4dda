"""Settings, themes, keys, trusted folders and standing permissions: what a person decides once and keeps in files."""
