"""Tables with a history, and the histories themselves: of eventide, of Hudi, of both in turn, of earlier releases."""
