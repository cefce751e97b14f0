"""The site: links, the reference, and the pictures."""
