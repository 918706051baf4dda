"""What screens show, as words and values: readings of a session, a view, figures. Pure: no widget, no app, no clock."""
