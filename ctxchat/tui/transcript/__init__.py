"""The conversation on screen: `transcript` is the widget, which draws lines; `block` what it is made of, `record` which blocks stand
for what the record holds, `markdown` how a model's words become lines. Knows values, never a session."""
