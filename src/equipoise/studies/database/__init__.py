"""A built-in study."""
