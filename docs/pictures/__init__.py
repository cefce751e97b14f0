"""The pictures of the documentation: `python -m docs.pictures`."""
