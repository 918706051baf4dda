"""The conversation on screen: `transcript` is the widget, `column` what stands in it and where, `blocks` and `tool_block` what
it is made of, `record` which of them stand for the record, `markdown` how a model's words become lines. Knows
values, no session."""
