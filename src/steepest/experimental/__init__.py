"""What may still change. Nothing is here at present, as in Optax 0.2.8."""
