"""Showing results: on the terminal, as JSON. Results come in; nothing is computed here."""
