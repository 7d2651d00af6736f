"""What is published beside the code: pages, examples, schemas, lists of what a release promises and contains."""
