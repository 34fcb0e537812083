"""The built-in providers; `catalogue` knows where each is."""
