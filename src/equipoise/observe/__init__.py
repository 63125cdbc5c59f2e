"""Effects from logs, by matching: where nothing could be held equal.

``equipoise.observe.analysis.observe`` is the story; docs/observe.md says what is computed.
"""
