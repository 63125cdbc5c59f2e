"""Designs beside their peers: R's MatchIt and pymatchit-causal, in one run each."""
