"""What a person watches while tasks run."""


class NoProgress:
    """Nobody watches."""

    def start(self, what: str, total: int) -> None:
        """A row of tasks begins."""

    def advance(self) -> None:
        """One of them has ended."""
