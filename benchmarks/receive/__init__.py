"""How many durable 2xx a second are given, beside one commit a request, and nothing stored at all."""
