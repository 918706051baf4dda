"""Ways to make room, each a small pure object; see `base.Strategy` for the contract."""
