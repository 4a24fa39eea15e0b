"""Training steps: data, forward, loss, backward, optimizer, of a model that is built in or a user's own."""
