"""The whole way, as a user goes it: real commands, real HTTP, a real server."""
