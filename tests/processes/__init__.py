"""Training in two processes with two devices each, saved, and resumed elsewhere."""
