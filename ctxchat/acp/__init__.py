"""The Agent Client Protocol: an editor drives sessions over standard input and output. Needs the extra `acp`.

`server` answers what an editor asks, `editor_session` carries out one session, `telling` says what happens in it; the rest
translates one thing each.
"""
