"""Other tools' result files, in and out."""
