"""Making room in a conversation: when a compaction is due, what it does, how it is carried out, what is prepared ahead."""
