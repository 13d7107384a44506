"""What goes wrong, as exceptions."""

from __future__ import annotations

from typing import Any


class PalomaError(Exception):
    """A problem response (RFC 9457): its status, its `code` and its whole body."""

    def __init__(self, status: int, problem: dict[str, Any]) -> None:
        self.status = status
        self.code = str(problem.get("code", "unknown"))
        self.problem = problem
        super().__init__(f"{status} {self.code}: {problem.get('detail') or problem.get('title') or 'no details'}")


class EventGapError(Exception):
    """Events after the cursor are no longer kept. Read again what you need by other ways, then continue without a cursor."""

    def __init__(self, cursor: str | None) -> None:
        self.cursor = cursor
        super().__init__(f"events after {cursor} are no longer kept")
