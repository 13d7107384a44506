"""The gateway's API with retries that are safe."""

from __future__ import annotations

import random
import time
import uuid
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import Any, Self, Unpack, cast

import httpx

from .errors import EventGapError, PalomaError
from .types import Acknowledgement, AnyEvent, EventName, EventPage, FileMessage, Send, TextMessage

_RETRIED = {429, 502, 503, 504}
_REPEATABLE = {"GET", "POST", "PUT"}
_LONGEST_WAIT = 60


class Paloma:
    """An account's view of the gateway; a context manager that closes its connections.

    base_url: with `/v1`. attempts: how often a request is tried in all; eight last half a minute, a restart of the
    gateway. timeout: seconds without a byte after which a connection counts as lost.
    """

    def __init__(self, base_url: str, api_key: str, *, attempts: int = 8, timeout: float = 30) -> None:
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

    @property
    def send(self) -> Send:
        """Sends a message of a kind whose body is JSON: `send("poll", {…})`."""
        return self._send

    def _send(self, kind: str, message: Mapping[str, Any], *, idempotency_key: str | None = None) -> Any:
        return self.request("POST", f"/messages/send/{kind}", json=message, idempotency_key=idempotency_key)

    def send_text(self, *, idempotency_key: str | None = None, **message: Unpack[TextMessage]) -> Acknowledgement:
        return self.send("text", message, idempotency_key=idempotency_key)

    def send_file(
        self, path: str | Path, *, idempotency_key: str | None = None, **fields: Unpack[FileMessage]
    ) -> Acknowledgement:
        """Sends a file, read from disk as it goes out."""
        answer: Acknowledgement = self.request(
            "POST", "/messages/send/file", data=fields, file=Path(path), idempotency_key=idempotency_key
        )
        return answer

    def events(
        self,
        after: str | None = None,
        *,
        types: Sequence[EventName] = (),
        session_id: str | None = None,
        poll: float = 1,
    ) -> Iterator[AnyEvent]:
        """Yields events without end, oldest first, and asks again after `poll` seconds when there are no more.

        after: the `id` of the last event that you handled; None begins with the oldest that is kept, "now" with the
        next. Raises EventGapError when events after it are no longer kept.
        """
        query = {"types": ",".join(types) or None, "sessionId": session_id}
        cursor = after
        while True:
            page: EventPage = self.request("GET", "/events", params={**query, "after": cursor})
            if page["gap"]:
                raise EventGapError(cursor)
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
        data: Mapping[str, Any] | None = None,
        file: Path | None = None,
        idempotency_key: str | None = None,
    ) -> Any:
        """Calls any operation; `path` without `/v1`. A POST has the same Idempotency-Key in all its tries.

        Raises PalomaError for what the gateway refuses, and httpx.TransportError when it cannot be reached.
        """
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
            except httpx.TransportError as error:
                # What never reached the gateway may be repeated whatever it is.
                if attempt == self._attempts or not (method in _REPEATABLE or isinstance(error, httpx.ConnectError)):
                    raise
                time.sleep(_pause(attempt))
                continue
            if answer.is_success:
                return answer.json()
            wait = _retry_after(answer) or _pause(attempt)
            # A quota of the day names hours: that is for the caller to decide.
            if answer.status_code not in _RETRIED or attempt == self._attempts or wait > _LONGEST_WAIT:
                raise PalomaError(answer.status_code, _problem(answer))
            time.sleep(wait)
        raise ValueError("attempts must be at least 1")


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
    return cast(dict[str, Any], body) if isinstance(body, dict) else {}
