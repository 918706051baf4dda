"""The composition root: the only place that knows everyone. Settings in, a running program out (`program.Program`)."""
