"""What the gateway refuses, as an exception."""

from __future__ import annotations

from typing import Any


class PalomaError(Exception):
    """A problem response (RFC 9457): its status, its `code` and its whole body."""

    def __init__(self, status: int, problem: dict[str, Any]) -> None:
        self.status = status
        self.code = str(problem.get("code", "unknown"))
        self.problem = problem
        super().__init__(f"{status} {self.code}: {problem.get('detail') or problem.get('title') or 'no details'}")
