"""The part of the site that is made by a program: see `reference` and `hooks`."""
