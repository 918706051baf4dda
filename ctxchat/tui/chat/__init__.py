"""The parts of the chat screen: the `screen` itself; its first and last line (`edges`); what is over the composer, from `banner`
to `questions`; the `composer`; the context panel. The conversation itself is in `tui/transcript`."""
