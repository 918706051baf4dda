"""The parts of the screens, named as a person would call them."""
