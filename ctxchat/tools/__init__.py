"""The tools an agent can call: files, search, shell, web, memory and questions. `catalogue.standard_tools` builds them."""
