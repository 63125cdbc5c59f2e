"""Effects from logs, by matching: where nothing could be held equal.

``equipoise.observation.analysis.observe`` is the story; docs/observe.md says what is computed.
"""
