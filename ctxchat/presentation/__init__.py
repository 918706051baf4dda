"""What people are shown of a session, a view and figures, as words and values: said once for screens, command line and editors.

Pure: no widget, no app, no clock.
"""
