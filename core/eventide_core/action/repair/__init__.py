"""What can be mended of what `verify` found, and from what."""
