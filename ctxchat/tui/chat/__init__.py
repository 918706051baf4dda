"""What the chat is made of: its `screen`; its first and last line (`edges`); the `feed`, which keeps the transcript in step with
the session; what is over the composer, from `banner` to `questions`; the `composer`; the context panel. The transcript itself is
in `tui/transcript`."""
