"""Effects: estimate what the treatment changed, from the rows and the weights of a design."""
