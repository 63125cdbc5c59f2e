"""What a program copies to report its own metrics: one file for each language, and harnesses."""
