"""Settings, themes, keys, trusted folders and standing permissions: decisions of a person that are stored in files."""
