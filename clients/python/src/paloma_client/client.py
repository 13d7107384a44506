"""The gateway's API with retries that are safe."""

from __future__ import annotations

import random
import time
import uuid
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import httpx

from .errors import PalomaError

_RETRIED = {429, 502, 503, 504}
_REPEATABLE = {"GET", "POST"}
_LONGEST_WAIT = 60


class Paloma:
    """An account's view of the gateway; a context manager that closes its connections.

    base_url: with `/v1`. attempts: how often a request is tried in all.
    """

    def __init__(self, base_url: str, api_key: str, *, attempts: int = 6, timeout: float = 30) -> None:
        self._attempts = attempts
        self._http = httpx.Client(base_url=base_url, headers={"x-api-key": api_key}, timeout=timeout)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        self._http.close()

    def send(self, kind: str, message: Mapping[str, Any], *, idempotency_key: str | None = None) -> dict[str, Any]:
        """Sends a message of a kind whose body is JSON: `text`, `location`, `poll`, `template`…"""
        answer: dict[str, Any] = self.request(
            "POST", f"/messages/send/{kind}", json=message, idempotency_key=idempotency_key
        )
        return answer

    def send_text(self, **message: Any) -> dict[str, Any]:
        return self.send("text", message)

    def send_file(
        self, path: str | Path, *, idempotency_key: str | None = None, **fields: str
    ) -> dict[str, Any]:
        """Sends a file, read from disk as it goes out."""
        answer: dict[str, Any] = self.request(
            "POST", "/messages/send/file", data=fields, file=Path(path), idempotency_key=idempotency_key
        )
        return answer

    def events(
        self, after: str | None = None, *, types: Sequence[str] = (), session_id: str | None = None, poll: float = 1
    ) -> Iterator[dict[str, Any]]:
        """Yields events without end, oldest first. Keep the `id` of the last one that you handled, and pass it as
        `after` to continue from there."""
        query = {"types": ",".join(types) or None, "sessionId": session_id}
        cursor = after
        while True:
            page = self.request("GET", "/events", params={**query, "after": cursor})
            yield from page["data"]
            if page["next"] is None:
                time.sleep(poll)
            else:
                cursor = page["next"]

    def request(
        self,
        method: str,
        path: str,
        *,
        params: Mapping[str, str | None] | None = None,
        json: Mapping[str, Any] | None = None,
        data: Mapping[str, str] | None = None,
        file: Path | None = None,
        idempotency_key: str | None = None,
    ) -> Any:
        """Calls any operation. A POST has the same Idempotency-Key in all its tries. Raises PalomaError for what the
        gateway refuses, and httpx.TransportError when it cannot be reached."""
        headers = {"idempotency-key": idempotency_key or str(uuid.uuid4())} if method == "POST" else {}
        query = {name: value for name, value in (params or {}).items() if value is not None}
        for attempt in range(1, self._attempts + 1):
            try:
                if file is None:
                    answer = self._http.request(method, path, params=query, json=json, headers=headers)
                else:
                    with file.open("rb") as stream:
                        answer = self._http.request(
                            method, path, data=data, files={"file": (file.name, stream)}, headers=headers
                        )
            except httpx.TransportError:
                if attempt == self._attempts or method not in _REPEATABLE:
                    raise
                time.sleep(_pause(attempt))
                continue
            if answer.is_success:
                return answer.json() if answer.content else None
            wait = _retry_after(answer) or _pause(attempt)
            # A quota of the day names hours: that is for the caller to decide.
            if answer.status_code not in _RETRIED or attempt == self._attempts or wait > _LONGEST_WAIT:
                raise PalomaError(answer.status_code, _problem(answer))
            time.sleep(wait)
        raise AssertionError("attempts is at least 1")


def _pause(attempt: int) -> float:
    return random.uniform(0.5, 1) * min(0.2 * 2.0**attempt, 10)


def _retry_after(answer: httpx.Response) -> float | None:
    value: str = answer.headers.get("retry-after", "")
    return float(value) if value.isdigit() else None


def _problem(answer: httpx.Response) -> dict[str, Any]:
    try:
        body = answer.json()
    except ValueError:
        return {}
    return body if isinstance(body, dict) else {}
