"""Where windows are marked as done: files on any storage, and URLs, each an adapter of `ports.MarkerTarget`."""
