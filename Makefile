.PHONY: check format lint types contracts test docs bench
RUN = uv run --frozen

check: format lint types contracts test

format:
	$(RUN) ruff format .
	$(RUN) ruff check --fix --quiet . || true

lint:
	$(RUN) ruff format --check .
	$(RUN) ruff check .

types:
	$(RUN) basedpyright --level error

contracts:
	$(RUN) lint-imports

test:
	$(RUN) pytest -n auto
