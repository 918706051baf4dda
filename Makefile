.PHONY: check fix lint types contracts test chaos docs site bench
RUN = uv run --frozen --group check

check: lint types contracts test

# Formats, and mends what the linter can mend: the only one of these that changes files.
fix:
	$(RUN) ruff format .
	$(RUN) ruff check --fix .

lint:
	$(RUN) ruff format --check .
	$(RUN) ruff check .

types:
	$(RUN) basedpyright --level error

contracts:
	$(RUN) lint-imports

test:
	$(RUN) pytest -n auto

# The long part: every fault, key and signal there is, in full. Its last figures are in docs/robustness.md.
chaos:
	$(RUN) pytest -m long -n auto
	$(RUN) pytest --hypothesis-profile=long -n auto

# Pictures of the screens, from the real interface over a fixed session.
docs:
	$(RUN) python docs/make_pictures.py

# The documentation as a site, in site/; a link that leads nowhere fails tests/test_docs.py.
site:
	uv run --frozen --only-group docs zensical build --strict

bench:
	for file in benchmarks/*.py; do case $$file in */_*) ;; *) echo "== $$file"; $(RUN) python $$file;; esac; done
