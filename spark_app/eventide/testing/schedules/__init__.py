"""All interleavings of a few processes over one table. Imports the crash enumeration and below."""
