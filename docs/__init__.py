"""The documentation, and the commands that make its pictures."""
