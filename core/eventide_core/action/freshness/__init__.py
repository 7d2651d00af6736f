"""The watermark, and which commit of the read-optimized view answers T."""
