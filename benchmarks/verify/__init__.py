"""How `equipoise verify` answers 60 patches whose true answer is known."""
