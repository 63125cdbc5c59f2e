"""What is observed, not set, beside each trial: one file a source, read outside its time."""
