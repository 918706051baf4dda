"""The terminal itself: its first frame, the keys typed before the interface is there, its driver and its input."""
