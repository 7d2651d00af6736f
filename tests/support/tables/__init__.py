"""Tables that tests make for themselves: small ones, on any storage, with event times of hours or days."""
