"""What Equipoise talks about: frozen data, no input and no output.

Every other room may import this one; this one imports nothing of ours.
"""
