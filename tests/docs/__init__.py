"""The pages: links, and the reference."""
