"""Which module a call's time goes to, forward and backward, without an edit of the model."""
