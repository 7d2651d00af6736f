"""What each rule of a cut costs and gives on a stream with late records. README.md has the figures."""
