"""Stories, each one short script and a picture; `python -m gallery` makes them all."""
