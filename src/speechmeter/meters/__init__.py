"""What is read off a session: one file a meter. Each says what it needs, and why when it cannot."""
