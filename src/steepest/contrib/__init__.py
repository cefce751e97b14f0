"""Named algorithms and wrappers that Optax keeps in its `contrib`."""
