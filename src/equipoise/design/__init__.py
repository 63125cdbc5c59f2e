"""From what is asked to what is run: conditions, blocks, and the coin that orders them."""
