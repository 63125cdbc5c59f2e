"""Running trials and reading their surroundings; the timing itself is the launcher's."""
